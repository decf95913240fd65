import { createMemoryBus } from '../../src/hints/memory.js';
import { busContract } from './bus-contract.js';

busContract('memory', () => createMemoryBus());

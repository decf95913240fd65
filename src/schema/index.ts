// The whole schema: importing a file adds its types to the builder.
import { builder } from './builder.js';
import './scalars.js';
import './errors.js';
import './users.js';
import './devices.js';
import './viewer.js';
import './conversations.js';
import './memberships.js';
import './messages.js';
import './read-state.js';
import './delivery.js';
import './batches.js';
import './sync.js';
import './unread.js';
import './hints.js';

export const schema = builder.toSchema();

// Runs random histories against a service; used by the ordinary test, the long run and the mutants.
import fc from 'fast-check';
import type { World } from '../support/world.js';
import type { FailpointGate } from './failpoint-gate.js';
import { history } from './steps.js';
import { Story } from './story.js';

export interface Options {
  readonly seed: number;
  readonly runs: number;
  readonly stepsPerRun: number;
  readonly shrink?: boolean;
}

/** @throws fast-check's report with the seed and the shrunk history; answers how often each thing happened */
export async function runHistories(world: World, gate: FailpointGate, options: Options): Promise<Map<string, number>> {
  const tally = new Map<string, number>();
  const property = fc.asyncProperty(history(options.stepsPerRun), async ({ users, convs, steps }) => {
    const story = new Story(world, gate, tally);
    await story.begin(users, convs);
    for (const step of steps) {
      await story.take(step);
      story.count('steps');
    }
    await story.end();
  });
  await fc.assert(property, { seed: options.seed, numRuns: options.runs, endOnFailure: options.shrink !== true });
  return tally;
}

// What came of an operation, told briefly.
import { Refused } from './world.js';

/** 'ok', or the code of the refusal. */
export async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return 'ok';
  } catch (error) {
    if (error instanceof Refused) return error.code;
    throw error;
  }
}

/** The refusal itself; that there is none is a failure. */
export async function refusalOf(work: Promise<unknown>): Promise<Refused> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** How often each comes. */
export function tally(values: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[String(value)] = (counts[String(value)] ?? 0) + 1;
  return counts;
}

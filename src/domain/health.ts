// Whether this node can do its work: what an orchestrator asks.
import type { HintBus } from '../hints/bus.js';
import { migrationState } from '../store/migrate.js';
import type { Deps } from './deps.js';

/** Empty `problems`: the node can do its work. */
export interface Readiness {
  readonly problems: readonly string[];
  readonly hints: HintBus['state'];
}

const readyWithinMs = 3_000;

export function problemsOf({ pending, failed, edited }: Awaited<ReturnType<typeof migrationState>>): string[] {
  return [
    ...(failed.length > 0 ? [`the database has a migration that failed or still runs: ${failed.join(', ')}`] : []),
    ...(pending.length > 0 ? [`the database lacks ${pending.join(', ')}: run \`tidemark migrate\``] : []),
    ...(edited.length > 0 ? [`the database has an older form of ${edited.join(', ')}`] : []),
  ];
}

/** Without Redis hints are late and everything else works: that makes no node unready, for it would make all of them so. */
export async function readiness({ store, bus }: Pick<Deps, 'store' | 'bus'>): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error('it is slow'));
    }, readyWithinMs);
  });
  try {
    return { problems: problemsOf(await Promise.race([migrationState(store.pool), late])), hints: bus.state };
  } catch {
    return { problems: ['the database does not answer'], hints: bus.state };
  } finally {
    clearTimeout(timer);
  }
}

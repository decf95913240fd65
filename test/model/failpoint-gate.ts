// Places an interleaving: stops the next operation that reaches a failpoint, until it is let go.
import pg from 'pg';
import type { Failpoint, FailpointName } from '../../src/domain/deps.js';

export class FailpointGate {
  #armed: { name: FailpointName; reached: () => void; opened: Promise<void> } | null = null;

  /** The override to give to the service. */
  readonly failpoint: Failpoint = async (name) => {
    const armed = this.#armed;
    if (armed?.name !== name) return;
    this.#armed = null;
    armed.reached();
    await armed.opened;
  };

  /** Stops the next operation at this point; `reached` resolves when it stands there. Disarmed, it stops no other. */
  stopAt(name: FailpointName): { reached: Promise<void>; disarm: () => void; letGo: () => void } {
    let letGo: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => (letGo = resolve));
    const reached = new Promise<void>((resolve) => {
      this.#armed = { name, reached: resolve, opened };
    });
    const disarm = () => {
      this.#armed = null;
    };
    return { reached, disarm, letGo };
  }
}

/** Resolves once some backend of this database waits for a lock. On a connection of its own: the service's may all be waiting. */
export async function someoneWaits(databaseUrl: string, isOver: () => boolean): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    while (!isOver()) {
      const { rowCount } = await client.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' LIMIT 1`,
      );
      if (rowCount) return;
    }
  } finally {
    await client.end();
  }
}

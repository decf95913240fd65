// Many devices for a node in another process: rows in the database with a secret that all share, and a child process of real
// clients (many-devices-child.ts), so that whoever serves them has an event loop of its own.
import { fork } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Pool } from 'pg';
import { leash } from './leash.js';

/** What the clients have seen so far. */
export interface Seen {
  /** have a live subscription now */
  readonly live: number;
  /** are live, and were answered `convs(lagging: true)` since, by the largest head in it */
  readonly byHead: Readonly<Record<string, number>>;
  /** by the largest seq that a hint brought since they became live */
  readonly byHint: Readonly<Record<string, number>>;
  /** how often a socket was closed with which code (0: could not be opened), and a query answered with which status */
  readonly closes: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  /** what a client does not come back from by itself */
  readonly fatal: readonly string[];
}
export interface ManyDevices extends AsyncDisposable {
  /** As told last: several times a second. */
  seen(): Seen;
  /** Resolves once it fits; rejects when it ends before that, or after the time. */
  until(fits: (seen: Seen) => boolean, withinMs: number): Promise<void>;
  /** Without a goodbye. */
  kill(): Promise<void>;
}

/** Users `u1`, `u2` …, each with `perUser` devices; answers the devices' credentials. */
export async function registerMany(pool: Pool, users: number, perUser: number): Promise<string[]> {
  const secret = randomBytes(32).toString('base64url');
  await pool.query(`INSERT INTO users (id) SELECT 'u' || u FROM generate_series(1, $1::int) u`, [users]);
  const { rows } = await pool.query<{ id: string }>(
    `INSERT INTO devices (id, user_id, secret_hash)
     SELECT 'u' || u || '-' || d, 'u' || u, $3 FROM generate_series(1, $1::int) u, generate_series(1, $2::int) d RETURNING id`,
    [users, perUser, createHash('sha256').update(secret).digest()],
  );
  return rows.map(({ id }) => `tm_${id}.${secret}.0`);
}

const nothing: Seen = { live: 0, byHead: {}, byHint: {}, closes: {}, statuses: {}, fatal: [] };

/** Each connects at once, and asks `convs(lagging: true)` whenever it is told to resync. */
export function connectMany(url: string, credentials: readonly string[]): ManyDevices {
  const program = fileURLToPath(new URL('many-devices-child.ts', import.meta.url));
  const child = fork(program, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const guard = leash('kill -s KILL "$1"', String(child.pid));
  const ended = once(child, 'exit').finally(() => {
    guard[Symbol.dispose]();
  });
  let seen = nothing;
  child.on('message', (told) => (seen = told as Seen));
  child.send({ url, credentials });
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return {
    seen: () => seen,
    kill,
    [Symbol.asyncDispose]: kill,
    until: async (fits, withinMs) => {
      const deadline = AbortSignal.timeout(withinMs);
      while (!fits(seen)) {
        const end = await Promise.race([
          once(child, 'message', { signal: deadline }).then(
            () => null,
            () => 'too late',
          ),
          ended.then(() => 'the clients have ended'),
        ]);
        if (end !== null) throw new Error(`${end}: ${JSON.stringify(seen)}`);
      }
    },
  };
}

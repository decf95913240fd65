// Who may run on a database, and what becomes of it when the connection that holds the lease breaks.
import pg from 'pg';
import { expect, it, vi } from 'vitest';
import { LEASE_LOCK, takeLease } from '../../src/store/lease.js';
import { freshDatabase } from '../support/postgres.js';
import { startProxy } from '../support/proxy.js';

const lock = String(LEASE_LOCK);

async function connect(url: string, name = 'a test'): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Names of the sessions that hold the lease. */
async function holders(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT a.application_name AS name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE l.locktype = 'advisory' AND l.granted AND (l.classid::bigint << 32 | l.objid::bigint) = ${lock}
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows.map(({ name }) => name);
}

const breakIt = (client: pg.Client, name: string) =>
  client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [name]);

it('[H6] without Redis there is one, with Redis any number, and never a mixture', async () => {
  await using database = await freshDatabase();
  const take = (shared: boolean) => takeLease({ url: database.url, shared, onLost: vi.fn() });
  const alone = await take(false);
  expect(await take(false)).toBeNull();
  expect(await take(true)).toBeNull();
  await alone?.[Symbol.asyncDispose]();
  const [one, two] = [await take(true), await take(true)];
  expect(one).not.toBeNull();
  expect(two).not.toBeNull();
  expect(await take(false)).toBeNull();
  for (const lease of [one, two]) await lease?.[Symbol.asyncDispose]();
  const again = await take(false);
  expect(again).not.toBeNull();
  await again?.[Symbol.asyncDispose]();
});

it('[H6] a lease is given up in a moment although the network to the database is gone', async () => {
  await using database = await freshDatabase();
  await using network = await startProxy(() => database.url);
  const lease = await takeLease({ url: network.through(database.url), shared: true, onLost: vi.fn() });
  network.set('drop');
  await lease?.[Symbol.asyncDispose]();
}, 5_000);

it('[H6] of many that start at once exactly one gets it', async () => {
  await using database = await freshDatabase();
  const all = await Promise.all(
    Array.from({ length: 8 }, () => takeLease({ url: database.url, shared: false, onLost: vi.fn() })),
  );
  expect(all.filter((lease) => lease !== null)).toHaveLength(1);
  for (const lease of all) await lease?.[Symbol.asyncDispose]();
});

it('[H6] a broken connection takes it again', async () => {
  await using database = await freshDatabase();
  const onLost = vi.fn();
  const lease = await takeLease({ url: database.url, shared: false, onLost });
  const client = await connect(database.url);
  const [name = ''] = await holders(client);
  expect(name).toMatch(/^tidemark lease /u);
  for (let times = 0; times < 3; times++) {
    await breakIt(client, name);
    await expect.poll(() => holders(client)).toEqual([name]);
  }
  await client.end();
  await lease?.[Symbol.asyncDispose]();
  expect(onLost).not.toHaveBeenCalled();
});

it('[H6] when another one has it by then, the process is told that it lost', async () => {
  await using database = await freshDatabase();
  const onLost = vi.fn();
  const lease = await takeLease({ url: database.url, shared: false, onLost });
  const client = await connect(database.url);
  const [name = ''] = await holders(client);
  const rival = await connect(database.url, 'a rival');
  const waiting = rival.query(`SELECT pg_advisory_lock(${lock})`);
  await breakIt(client, name);
  await waiting;
  await expect.poll(() => onLost.mock.calls.length, { timeout: 10_000 }).toBe(1);
  expect(await holders(client)).toEqual(['a rival']);
  await lease?.[Symbol.asyncDispose]();
  await rival.end();
  await client.end();
});

it('[H6] a session of its own that outlived its connection does not keep it out', async () => {
  await using database = await freshDatabase();
  const onLost = vi.fn();
  const lease = await takeLease({ url: database.url, shared: false, onLost });
  const client = await connect(database.url);
  const [name = ''] = await holders(client);
  const { rows } = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_activity WHERE application_name = $1', [
    name,
  ]);
  const ghost = await connect(database.url, name);
  const ended = new Promise((resolve) => ghost.once('end', resolve));
  const waiting = ghost.query(`SELECT pg_advisory_lock(${lock})`);
  await client.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
  await waiting;
  await ended;
  await expect.poll(() => holders(client)).toEqual([name]);
  await lease?.[Symbol.asyncDispose]();
  await client.end();
  expect(onLost).not.toHaveBeenCalled();
});

// What the store throws when the database cannot be had, as it really is thrown, told apart from what the database refuses.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { expect, it } from 'vitest';
import { createStore, type Store } from '../../src/store/store.js';
import { isUnavailable } from '../../src/store/unavailable.js';
import type { DeviceId } from '../../src/model.js';
import { freshDatabase } from '../support/postgres.js';
import { startProxy } from '../support/proxy.js';

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'it worked',
    (error: unknown) => error,
  );
const raw = (store: Pick<Store, 'devices'>) => store.devices.outdated([{ device: 'x' as DeviceId, installEpoch: 0 }]);
const model = (store: Pick<Store, 'generation'>) => store.generation.current();

/** Each way in which the store asks. */
const asked = (store: Store): Promise<unknown>[] => [
  raw(store),
  model(store),
  store.transaction(raw),
  store.transaction(model),
  store.read(model),
];

async function everyOneUnavailable(work: Promise<unknown>[]): Promise<void> {
  for (const failure of await Promise.all(work.map(failureOf))) {
    expect({ failure, isUnavailable: isUnavailable(failure) }).toMatchObject({ isUnavailable: true });
  }
}

it('[P2] no connection of the pool becomes free', async () => {
  await using db = await freshDatabase();
  await using store = createStore({ url: db.url, poolMax: 2 });
  const held = await Promise.all([store.pool.connect(), store.pool.connect()]);
  await everyOneUnavailable(asked(store));
  for (const client of held) client.release();
  expect(await model(store)).toBeTypeOf('string');
});

it('[P2] a network that swallows everything: no statement waits for ever, and no connection of it is kept', async () => {
  await using db = await freshDatabase();
  await using network = await startProxy(() => db.url);
  await using store = createStore({ url: network.through(db.url), poolMax: 5, silenceMs: 300 });
  await Promise.all(asked(store));
  network.set('drop');
  await everyOneUnavailable(asked(store));
  network.set('pass');
  expect(await Promise.all(asked(store))).toHaveLength(5);
});

it('[P2] no server, a server that does not answer in time, a connection that is ended, a transaction that takes too long', async () => {
  await using db = await freshDatabase();
  await using store = createStore({ url: db.url, poolMax: 8 });
  await using admin = await connect(db.url);
  for (const setting of ['statement_timeout', 'lock_timeout']) {
    await using slow = createStore({ url: db.url, poolMax: 8 });
    const clients = await Promise.all(Array.from({ length: 8 }, () => slow.pool.connect()));
    for (const client of clients) await client.query(`SET ${setting} = 100`);
    for (const client of clients) client.release();
    await admin.query('BEGIN; LOCK TABLE devices, generation');
    await everyOneUnavailable(asked(slow));
    await admin.query('ROLLBACK');
  }
  await admin.query('BEGIN; LOCK TABLE devices, generation');
  const cut = everyOneUnavailable(asked(store));
  await expect.poll(() => store.pool.totalCount - store.pool.idleCount).toBe(5);
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await cut;
  await admin.query('ROLLBACK');
  await everyOneUnavailable([store.transaction(async (tx) => pause(200).then(() => model(tx)), 100)]);
  await using nowhere = createStore({ url: 'postgresql://nobody@127.0.0.1:1/nowhere', poolMax: 2 });
  await everyOneUnavailable(asked(nowhere));
});

it('[P2] what the database refuses is not that', async () => {
  await using db = await freshDatabase();
  await using store = createStore({ url: db.url, poolMax: 2 });
  await store.pool.query('ALTER TABLE devices RENAME TO hidden');
  expect(isUnavailable(await failureOf(raw(store)))).toBe(false);
  await store.pool.query('ALTER TABLE hidden RENAME TO devices');
  const secretHash = new Uint8Array(32);
  const orphan = store.devices.insert({ id: 'x' as DeviceId, user: 'nobody' as never, name: null, secretHash });
  expect(isUnavailable(await failureOf(orphan))).toBe(false);
  for (const other of [null, undefined, 'P2024', new Error('timeout'), { code: 7 }]) {
    expect(isUnavailable(other)).toBe(false);
  }
});

async function connect(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

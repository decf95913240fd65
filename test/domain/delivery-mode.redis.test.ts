// PUSH and PULL (H7) over two nodes and one Redis, with everything going on at once.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type StartOptions, type TestApp } from '../support/app.js';
import { listenToMessages, type Live, type MessageHintRow } from '../support/live-hints.js';
import { freshDatabase, type TestDatabase } from '../support/postgres.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { Actor, World } from '../support/world.js';

const crowd = Array.from({ length: 6 }, (_, n) => `u${String(n + 1)}`);
let fails = false;
let database: TestDatabase;
let redis: TestRedis;
let one: World;
let two: TestApp;
let ana: Actor;

beforeAll(async () => {
  [database, redis] = await Promise.all([freshDatabase(), startRedis()]);
  const options: StartOptions = {
    databaseUrl: database.url,
    // hints go both ways for so short that most messages of a test come after it
    config: { redisUrl: redis.url, delivery: { pullAt: 6, bothMs: 150, everyMs: 20 } },
  };
  const failpoint = (name: string) =>
    fails && name === 'before publish' ? Promise.reject(new Error('it dies')) : Promise.resolve();
  one = new World(await startApp({ ...options, overrides: { failpoint } }));
  two = await startApp(options);
  await one.users('ana', 'ben', 'cho', ...crowd);
  ana = await one.device('ana');
});
afterAll(async () => {
  await two[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const onTwo = (actor: Actor) => new Actor(two, actor.credential);
const modeOf = async (conv: string) =>
  (await ana.ask<{ conv: { mode: string } }>(`query ($id: ID!) { conv(id: $id) { mode } }`, { id: conv })).conv.mode;
const bothIsOver = (conv: string) =>
  expect
    .poll(async () => {
      const text = 'SELECT both_until < clock_timestamp() AS over FROM conversations WHERE id = $1';
      return (await one.app.deps.store.pool.query<{ over: boolean }>(text, [conv])).rows[0]?.over;
    })
    .toBe(true);

/** A client that knows one log by its hints, and asks whenever it is told to. */
class Client {
  readonly actor: Actor;
  readonly conv: string;
  readonly heard = new Set<number>();
  known = 0;
  readonly #live: Live<MessageHintRow>;
  #asking: Promise<void> = Promise.resolve();

  constructor(actor: Actor, conv: string, live: Live<MessageHintRow>) {
    this.actor = actor;
    this.conv = conv;
    this.#live = live;
    void this.#run();
  }

  static async connect(actor: Actor, conv: string): Promise<Client> {
    const client = new Client(actor, conv, await listenToMessages(actor));
    await client.#ask(); // as after any resync
    return client;
  }

  async #run(): Promise<void> {
    for (;;) {
      const row = await this.#live.next(600_000).catch(() => null);
      if (row === null) return;
      if (row.resync !== null) this.#asking = this.#asking.then(() => this.#ask());
      else if (row.conv?.id === this.conv) this.#hear(row.seq);
    }
  }

  #hear(seq: number): void {
    this.heard.add(seq);
    this.known = Math.max(this.known, seq);
  }

  async #ask(): Promise<void> {
    const head = await this.actor.conv(this.conv).then(
      ({ head: now }) => now,
      () => 0,
    ); // no member yet
    this.known = Math.max(this.known, head);
  }

  close = () => this.#live.socket.close();
}

/** Everything has been done: what a client does not get to know now it would miss for ever. */
async function everyoneIsRight(clients: readonly Client[]): Promise<void> {
  for (const client of clients) {
    const { head } = await client.actor.conv(client.conv);
    await expect.poll(() => client.known, { timeout: 20_000 }).toBe(head);
    const visible = new Set((await client.actor.catchUp(client.conv)).map(({ seq }) => seq));
    expect([...client.heard].filter((seq) => !visible.has(seq))).toEqual([]); // M1
  }
}

/** Two senders, one on each node, do what they can until the work is done. */
async function whileOthersSend(conv: string, work: readonly Promise<unknown>[]): Promise<void> {
  const done = new AbortController();
  const sending = [ana, onTwo(ana)].map(async (sender) => {
    while (!done.signal.aborted) await sender.send(conv, 'x');
  });
  await Promise.all(work).finally(() => {
    done.abort();
  });
  await Promise.all(sending);
}
const outAndIn = (actor: Actor, conv: string) => actor.leave(conv).then(() => actor.join(conv));

/** A group of all, and a client of everybody but ana on each node. */
async function everyone() {
  const conv = (await ana.createConv({ members: ['ben', 'cho', ...crowd], joinPolicy: 'OPEN' })).conv.id;
  const devices = await Promise.all(['ben', 'cho', ...crowd].map((user) => one.device(user)));
  const actors = devices.flatMap((device) => [device, onTwo(device)]);
  const clients = await Promise.all(actors.map((actor) => Client.connect(actor, conv)));
  const close = () => Promise.all(clients.map((client) => client.close()));
  return { conv, ben: devices[0] ?? ana, clients, close };
}

test('[H7] [H6] [M1] the mode goes up and down while others send: nobody misses anything, nobody overhears', async () => {
  const { conv, ben, clients, close } = await everyone();
  const modes = new Set<string>();
  for (let round = 0; round < 4; round++) {
    const some = crowd.slice(0, 5); // 9 → 4 → 9 members, and ben out and in again, at once
    await whileOthersSend(conv, [outAndIn(ben, conv), ...some.map((user) => ana.removeMember(conv, user))]);
    modes.add(await modeOf(conv));
    if (round % 2 === 0) await everyoneIsRight(clients).then(() => bothIsOver(conv));
    await whileOthersSend(conv, [outAndIn(onTwo(ben), conv), ...some.map((user) => ana.addMembers(conv, [user]))]);
    modes.add(await modeOf(conv));
    await everyoneIsRight(clients);
    if (round % 3 === 0) await bothIsOver(conv);
  }
  expect(modes).toEqual(new Set(['PUSH', 'PULL']));
  await close();
}, 120_000);

test('[H7] [H6] [M2] members of a large group come and go while others send: nobody misses anything, nobody overhears', async () => {
  const { conv, ben, clients, close } = await everyone();
  await bothIsOver(conv);
  const outAndInByAna = (user: string) => ana.removeMember(conv, user).then(() => ana.addMembers(conv, [user]));
  for (let round = 0; round < 5; round++) {
    await whileOthersSend(conv, [outAndIn(ben, conv), outAndInByAna('u1'), outAndInByAna('u2')]);
    await everyoneIsRight(clients);
  }
  await whileOthersSend(conv, [ana.removeMember(conv, 'cho')]);
  expect(await modeOf(conv)).toBe('PULL');
  const { event } = await ana.send(conv, 'the last');
  await everyoneIsRight(clients);
  // all but cho have heard of it, not only asked
  await expect.poll(() => clients.filter(({ heard }) => heard.has(event.seq)).length).toBe(clients.length - 2);
  await close();
}, 120_000);

test('[H7] [H2] subscribers come and go while the mode goes up and down and others send: each is live from its first item', async () => {
  const conv = (await ana.createConv({ members: ['ben', 'cho', 'u1', 'u2'] })).conv.id;
  const [ben, cho] = await Promise.all([one.device('ben'), one.device('cho')]);
  const done = new AbortController();
  const switching = (async () => {
    while (!done.signal.aborted) {
      await ana.addMembers(conv, ['u3']);
      await ana.removeMember(conv, 'u3');
      await ana.removeMember(conv, 'u2');
      await bothIsOver(conv);
      await ana.addMembers(conv, ['u2']);
    }
  })();
  const coming = [ben, onTwo(ben), cho, onTwo(cho)].map(async (actor) => {
    for (let turn = 0; turn < 15; turn++) {
      const live = await listenToMessages(actor);
      const { event } = await ana.send(conv, 'x');
      await live.until(({ seq, resync }) => seq >= event.seq || resync === 'MODE');
      await live.socket.close();
    }
  });
  await Promise.all(coming).finally(() => {
    done.abort();
  });
  await switching;
  for (const { deps } of [one.app, two]) await expect.poll(() => deps.bus.stats()).toEqual({ sinks: 0, channels: 0 });
});

test('[H2] [H7] a subscription is live on the conversation’s channel too when its first item is there', async () => {
  await one.users('eva'); // who is in nothing else
  const conv = (await ana.createConv({ members: ['eva', 'u1', 'u2', 'u3', 'u4'] })).conv.id;
  await bothIsOver(conv);
  const eva = onTwo(await one.device('eva'));
  for (let turn = 0; turn < 30; turn++) {
    const live = await listenToMessages(eva);
    const { event } = await ana.send(conv, 'at once');
    expect(await live.next()).toMatchObject({ resync: null, seq: event.seq });
    await live.socket.close();
  }
});

test('[H7] [H3] a switch that dies with its node before a word is found out, and Redis may go away and come back', async () => {
  await one.users('dan'); // who is in nothing else
  const conv = (await ana.createConv({ members: ['dan', 'u1', 'u2', 'u3'] })).conv.id;
  const client = await Client.connect(onTwo(await one.device('dan')), conv);
  await expect
    .poll(async () => {
      fails = true;
      await ana.addMembers(conv, ['u4']).catch(() => null);
      fails = false;
      return modeOf(conv);
    })
    .toBe('PULL');
  // as long as hints go both ways it is looked for; here that lasts until it has been found
  const bothUntil = (until: string) =>
    one.app.deps.store.pool.query(`UPDATE conversations SET both_until = ${until} WHERE id = $1`, [conv]);
  await bothUntil(`'infinity'`);
  await expect.poll(() => two.deps.bus.stats().channels, { timeout: 20_000 }).toBe(2); // dan’s, and the conversation’s
  await bothUntil('NULL');
  await ana.send(conv, 'the channel alone carries it');
  await everyoneIsRight([client]);
  await redis.kill('SIGKILL');
  const { event } = await ana.send(conv, 'lost');
  await redis.restart();
  await expect.poll(() => client.known, { timeout: 30_000 }).toBe(event.seq);
  const { event: later } = await ana.send(conv, 'later');
  await expect.poll(() => client.heard.has(later.seq), { timeout: 20_000 }).toBe(true);
  await client.close();
});

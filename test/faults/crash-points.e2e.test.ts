// A node dies at each point around the commit and the publishing of each kind of write; its client asks again elsewhere, with
// the same words. What was wanted is there exactly once, and the clients on the other node hear of it without anything more
// happening (H5).
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { clientOf } from '../support/app.js';
import { holdRows } from '../support/held-lock.js';
import { someoneWaits } from '../model/failpoint-gate.js';
import { fresh, type Actor, type World } from '../support/world.js';
import * as documents from '../support/documents.js';
import { Cluster, type Node } from './cluster.js';
import { Device } from './device.js';
import { Ledger } from './ledger.js';
import { differences } from './verdict.js';

let cluster: Cluster;
let world: World;
let ana: Actor;
let ben: Actor;
const ledger = new Ledger();
const devices: Device[] = [];

beforeAll(async () => {
  cluster = await Cluster.start(1);
  world = cluster.world();
  await world.users('ana', 'ben', 'cho');
  for (const user of ['ana', 'ben', 'cho']) {
    const { credential } = await world.device(user, `${user}-live`);
    devices.push(new Device(cluster, ledger, { user, name: `${user}-live`, credential, slot: 0 }));
  }
  [ana, ben] = [await world.device('ana'), await world.device('ben')];
  await vi.waitUntil(() => devices.every(({ badge, resyncs }) => badge !== null && resyncs > 0), 30_000);
});
afterAll(async () => {
  await Promise.all(devices.map((device) => device[Symbol.asyncDispose]()));
  await cluster[Symbol.asyncDispose]();
});

/** Every client on the node that lives shows what the database says; nothing more happens than what has, but the scans. */
async function everyoneIsRight(): Promise<void> {
  const wrong = async () => (await Promise.all(devices.map((device) => differences(ledger, device)))).flat();
  await expect.poll(wrong, { timeout: 30_000, interval: 100 }).toEqual([]);
}

interface Write {
  readonly by: () => Actor;
  readonly document: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** the rows that it locks first */
  readonly locks: readonly [select: string, value: string];
  readonly isDoneOnce: () => Promise<void>;
}

/** In a group of its own, in which ana has said one thing: 1 and 2 are the joins, 3 is that. */
type Prepare = (conv: string) => Write;

const lockConv = (conv: string) => ['SELECT 1 FROM conversations WHERE id = $1::uuid', conv] as const;
const lockUser = (user: string) => ['SELECT 1 FROM users WHERE id = $1', user] as const;

const kindsIn = async (actor: Actor, conv: string) => (await actor.catchUp(conv)).map(({ contentType }) => contentType);

const writes: Readonly<Record<string, Prepare>> = {
  send: (conv) => {
    const clientId = fresh('crash');
    const input = { conv, clientId, contentType: 'TEXT', content: { text: clientId } };
    return {
      by: () => ana,
      document: documents.send,
      variables: { input },
      locks: lockConv(conv),
      isDoneOnce: async () => {
        const events = await ana.catchUp(conv);
        expect(events.map((event) => [event.seq, event.clientId === clientId])).toEqual([
          [1, false],
          [2, false],
          [3, false],
          [4, true],
        ]);
        expect(await ben.conv(conv)).toMatchObject({ head: 4, unread: 2 });
        expect((await ana.send(conv, 'later')).event.seq).toBe(5);
      },
    };
  },
  markRead: (conv) => ({
    by: () => ben,
    document: documents.markRead,
    variables: { conv, seq: 3 },
    locks: lockUser('ben'),
    isDoneOnce: async () => expect(await ben.conv(conv)).toMatchObject({ head: 3, read: 3, unread: 0 }),
  }),
  mute: (conv) => ({
    by: () => ben,
    document: documents.setConvSettings,
    variables: { conv, muted: true },
    locks: lockUser('ben'),
    isDoneOnce: async () => expect(await ben.conv(conv)).toMatchObject({ head: 3, muted: true }),
  }),
  kick: (conv) => ({
    by: () => ana,
    document: documents.removeMember,
    variables: { conv, user: 'cho' },
    locks: lockConv(conv),
    isDoneOnce: async () => {
      expect(await kindsIn(ana, conv)).toEqual(['GROUP_CREATE', 'MEMBER_INVITE', 'TEXT', 'MEMBER_KICK']);
      expect(await world.asUser('cho').conv(conv)).toMatchObject({ joined: false, head: 4 });
      expect(await kindsIn(world.asUser('cho'), conv)).toEqual(['MEMBER_INVITE', 'TEXT', 'MEMBER_KICK']);
    },
  }),
};

async function prepared(name: string): Promise<Write> {
  const { conv } = await ana.createConv({ members: ['ben', 'cho'] });
  await ana.send(conv.id, 'before');
  const prepare = writes[name];
  if (!prepare) throw new Error(`no write ${name}`);
  return prepare(conv.id);
}

/** Nobody answers: the node is gone. */
async function ask({ by, document, variables }: Write, { url, process }: Node): Promise<void> {
  await expect(clientOf(url).query(by().credential, document, variables)).rejects.toThrow();
  expect(await process.ended).toMatchObject({ signal: 'SIGKILL' });
}

/** On the node that lives; once more than needed. */
async function askAgain({ by, document, variables }: Write): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await by().ask(document, variables);
}

/** The writes, each in a group and on a node of its own. */
const each = (
  names: readonly string[],
  env: Readonly<Record<string, string>>,
  act: (write: Write, node: Node) => Promise<void>,
) =>
  Promise.all(
    names.map(async (name) => {
      const [write, node] = await Promise.all([prepared(name), cluster.launch(env)]);
      try {
        await act(write, node);
      } finally {
        await node.process.kill('SIGKILL');
      }
      await askAgain(write);
      return write;
    }),
  );

const all = Object.keys(writes);
const isDoneOnce = async (done: readonly Write[]) => {
  for (const write of done) await write.isDoneOnce();
};

test('[L3] [R3] [M2] a node dies while its statement waits for a lock: nothing of it is left', async () => {
  // one after the other, so that who waits is the one that is meant
  let before: Promise<void> = Promise.resolve();
  const done = await each(all, {}, (write, node) => (before = before.then(() => killedWaiting(write, node))));
  await everyoneIsRight();
  await isDoneOnce(done);
});

async function killedWaiting(write: Write, node: Node): Promise<void> {
  const [select, value] = write.locks;
  await using held = await holdRows(cluster.postgres.url, select, [value]);
  const asking = ask(write, node);
  await someoneWaits(cluster.postgres.url, () => false);
  await node.process.kill('SIGKILL');
  await asking;
  await held.letGo();
}

test.each([
  // the others have their lock inside of one statement: see the test above
  ['after lock', ['kick']],
  ['before commit', all],
  ['after commit', all],
  ['before publish', all],
  ['after publish', all],
])(
  '[H5] [L3] [R3] [M2] a node dies %s: %s is done once all the same, and every client hears of it',
  async (point, names) => {
    const done = await each(names, { TIDEMARK_FAILPOINT: point }, ask);
    await everyoneIsRight();
    await isDoneOnce(done);
  },
);

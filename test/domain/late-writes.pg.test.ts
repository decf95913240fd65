// A credential that stops to hold while a write of it is under way: whatever row the write waits for, it is refused and has
// written nothing (I3, I5).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { someoneWaits } from '../model/failpoint-gate.js';
import { holdRows } from '../support/held-lock.js';
import * as documents from '../support/documents.js';
import { fresh, Refused, startWorld, type Actor, type World } from '../support/world.js';

let world: World;

beforeAll(async () => {
  world = await startWorld();
  await world.users('dan');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

/** The device under test is ana's; she owns `conv` with ben, is a member of `joined`, and may join `open`. */
interface Scene {
  readonly device: Actor;
  readonly other: Actor;
  readonly conv: string;
  readonly joined: string;
  readonly open: string;
  /** of now, when there is something to read */
  readonly asOf: string;
}
const deviceId = ({ credential }: Actor) => /^tm_([^.]+)/u.exec(credential)?.[1] ?? '';

async function setUp(): Promise<Scene> {
  const user = fresh('user-');
  await world.users(user);
  const [device, other] = [await world.device(user), await world.device(user)];
  const ben = world.asUser('ben');
  const conv = (await device.createConv({ members: ['ben', 'dan'] })).conv.id;
  const joined = (await ben.createConv({ members: [user] })).conv.id;
  const open = (await ben.createConv({ joinPolicy: 'OPEN' })).conv.id;
  await device.send(conv, 'own'); // 3
  await ben.send(conv, 'read me'); // 4
  const { asOf } = await device.badge();
  return { device, other, conv, joined, open, asOf };
}

const writes: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  send: ({ device, conv }) => device.send(conv, 'late'),
  'send with markReadUpTo': ({ device, conv }) => device.send(conv, 'late', { markReadUpTo: 4 }),
  recall: ({ device, conv }) => device.recall(conv, 3),
  markRead: ({ device, conv }) => device.markRead(conv, 4),
  markReadMany: ({ device, conv, joined }) =>
    device.markReadMany([
      { conv: joined, seq: 2 },
      { conv, seq: 4 },
    ]),
  markAllRead: ({ device, asOf }) => device.markAllRead(asOf),
  createConv: ({ device }) => device.createConv({ members: ['ben', 'dan'] }),
  'createConv DIRECT': ({ device }) => device.createConv({ type: 'DIRECT', members: ['ben'] }),
  addMembers: ({ device, conv }) => device.addMembers(conv, ['cho']),
  removeMember: ({ device, conv }) => device.removeMember(conv, 'ben'),
  join: ({ device, open }) => device.join(open),
  leave: ({ device, joined }) => device.leave(joined),
  setConvSettings: ({ device, conv }) => device.setMuted(conv, true),
  revokeDevice: ({ device, other }) => device.ask(documents.revokeDevice, { deviceId: deviceId(other) }),
};

/** What a write may wait for: held by somebody else's operation. */
const rows: Readonly<Record<string, (scene: Scene) => Promise<readonly [select: string, values: unknown[]]>>> = {
  'its conversation': ({ conv, joined, open }) =>
    Promise.resolve(['SELECT FROM conversations WHERE id = ANY ($1::uuid[])', [[conv, joined, open]]]),
  'its user': async ({ device }) => ['SELECT FROM users WHERE id = $1', [await userOf(device)]],
  'another user': () => Promise.resolve([`SELECT FROM users WHERE id IN ('ben', 'cho')`, []]),
  'its own membership': async ({ device }) => ['SELECT FROM members WHERE user_id = $1', [await userOf(device)]],
  'another’s membership': ({ conv }) =>
    Promise.resolve([`SELECT FROM members WHERE conv_id = $1 AND user_id = 'ben'`, [conv]]),
  'another device': ({ other }) => Promise.resolve(['SELECT FROM devices WHERE id = $1', [deviceId(other)]]),
};
const userOf = async (device: Actor) => (await device.ask<{ viewer: { id: string } }>('{ viewer { id } }')).viewer.id;

/** Everything that a write could have left behind, but for change numbers. */
async function written(): Promise<unknown[]> {
  const { rows: found } = await world.app.deps.store.pool.query<Record<string, unknown>>(`
    SELECT 'conversation' AS what, to_jsonb(c) AS row FROM conversations c
    UNION ALL SELECT 'event', to_jsonb(e) - 'xid' FROM events e
    UNION ALL SELECT 'member', to_jsonb(m) - 'change_no' FROM members m
    UNION ALL SELECT 'key', to_jsonb(k) FROM conv_keys k
    UNION ALL SELECT 'device', to_jsonb(d) - 'last_seen_at' FROM devices d
    ORDER BY 1, 2`);
  return found.map((row) => JSON.stringify(row));
}

const endings = {
  REVOKED: {
    code: 'UNAUTHENTICATED',
    end: ({ device }: Scene) => world.service.ask(documents.revokeDevice, { deviceId: deviceId(device) }),
  },
  STALE_INSTALL: { code: 'STALE_INSTALL', end: ({ device }: Scene) => device.reinstall(fresh('install')) },
};

/** 'no wait' when the write does not touch such a row; else what it answered to a credential that ended while it waited. */
async function attempt(write: string, row: string, ending: keyof typeof endings): Promise<string> {
  const scene = await setUp();
  const [select, values] = (await rows[row]?.(scene)) ?? ['', []];
  await using held = await holdRows(world.app.databaseUrl, select, values);
  const progress = { isOver: false };
  const answer = (writes[write]?.(scene) ?? Promise.resolve())
    .then(
      () => 'written',
      (error: unknown) => {
        if (!(error instanceof Refused)) return String(error);
        if (error.code === 'STALE_INSTALL') expect(error.extensions).toMatchObject({ installEpoch: 1 });
        return String(error.code);
      },
    )
    .finally(() => (progress.isOver = true));
  await someoneWaits(world.app.databaseUrl, () => progress.isOver);
  if (progress.isOver) return 'no wait';
  await endings[ending].end(scene);
  const before = await written();
  await held.letGo();
  const outcome = await answer;
  const after = await written();
  expect(
    after.filter((line) => !before.includes(line)),
    `${write} waiting for ${row}`,
  ).toEqual([]);
  return outcome;
}

test.each(Object.keys(writes))(
  '[I3] [I5] %s under way is refused once its credential has ended, whatever it waited for',
  async (write) => {
    let waits = 0;
    for (const row of Object.keys(rows)) {
      for (const ending of ['REVOKED', 'STALE_INSTALL'] as const) {
        const outcome = await attempt(write, row, ending);
        if (outcome === 'no wait') break;
        waits++;
        expect(outcome, `${write} waiting for ${row}, ${ending}`).toBe(endings[ending].code);
      }
    }
    expect(waits).toBeGreaterThan(0);
  },
  90_000,
);

test('[I5] once revoked or reinstalled, no write and no read of the old credential is accepted', async () => {
  for (const { code, end } of Object.values(endings)) {
    const scene = await setUp();
    await end(scene);
    const before = await written();
    const { device, conv } = scene;
    const asked: (() => Promise<unknown>)[] = [
      ...Object.values(writes).map((write) => () => write(scene)),
      () => device.ack(conv, 1),
      () => device.ackMany([{ conv, seq: 1 }]),
      () => device.badge(),
      () => device.convs(),
      () => device.conv(conv),
      () => device.history(conv),
      () => device.audit(conv),
      () => device.sync([]),
    ];
    for (const ask of asked) await expect(ask()).rejects.toMatchObject({ code });
    expect(await written()).toEqual(before);
  }
});

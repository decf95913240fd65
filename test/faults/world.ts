// Three users with two devices each, spread over the nodes, and the conversations they share; what they do under load, and
// whether at rest everything is as it was promised.
import { setTimeout as pause } from 'node:timers/promises';
import type { Seeded } from '../support/seeded.js';
import { fresh } from '../support/world.js';
import type { Cluster } from './cluster.js';
import { Device } from './device.js';
import { Ledger } from './ledger.js';
import type { ShownConv } from './ledger.js';

export interface FaultWorld extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly ledger: Ledger;
  readonly devices: readonly Device[];
  /** with the users who are in it */
  readonly convs: ReadonlyMap<string, readonly string[]>;
}

const users = ['ana', 'ben', 'cho'];

export async function populate(cluster: Cluster): Promise<FaultWorld> {
  const ledger = new Ledger();
  const world = cluster.world();
  await world.users(...users);
  const devices: Device[] = [];
  for (const user of users) {
    for (const slot of [0, 1]) {
      const name = `${user}-${String(slot)}`;
      const { credential } = await world.device(user, name);
      devices.push(new Device(cluster, ledger, { user, name, credential, slot }));
    }
  }
  const convs = new Map<string, readonly string[]>();
  for (const members of [users, ['ana', 'ben'], ['cho', 'ana']]) {
    const { conv } = await world.asUser(members[0] ?? '').createConv({ members, clientId: fresh() });
    convs.set(conv.id, members);
  }
  return {
    cluster,
    ledger,
    devices,
    convs,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(devices.map((device) => device[Symbol.asyncDispose]()));
    },
  };
}

export interface Load {
  /** No more is begun; resolves when all that had begun has been acknowledged. */
  stop(): Promise<void>;
}

const payload = 'conv { id head read unread delivered muted }';
const actions = {
  send: `mutation ($input: SendInput!) { send(input: $input) { event { seq } ${payload} } }`,
  markRead: `mutation ($conv: ID!, $seq: Seq!) { markRead(conv: $conv, seq: $seq) { read ${payload} } }`,
  ack: `mutation ($conv: ID!, $seq: Seq!) { ack(conv: $conv, seq: $seq) { delivered ${payload} } }`,
  mute: `mutation ($conv: ID!, $muted: Boolean!) { setConvSettings(conv: $conv, muted: $muted) { ${payload} } }`,
  recall: `mutation ($conv: ID!, $seq: Seq!) { recall(conv: $conv, seq: $seq) { event { seq } ${payload} } }`,
};

/** Each device does one thing after the other, without hurry. */
export function startLoad(world: FaultWorld, random: Seeded, paceMs = 60): Load {
  let stopped = false;
  const runs = world.devices.map(async (device, index) => {
    while (!stopped) {
      await act(world, device, random, index);
      await pause(random.below(2 * paceMs));
    }
  });
  return {
    stop: async () => {
      stopped = true;
      await Promise.all(runs);
    },
  };
}

async function act({ ledger, convs }: FaultWorld, device: Device, random: Seeded, index: number): Promise<void> {
  const mine = [...convs].filter(([, members]) => members.includes(device.user)).map(([id]) => id);
  const conv = random.pick(mine);
  const { through } = device.holding(conv);
  const seq = Math.max(0, through - random.below(3));
  const dice = random.below(100);
  if (dice < 45 || through === 0) await send(ledger, device, conv);
  else if (dice < 75) {
    const { markRead } = await device.http.ask<{ markRead: { read: number; conv: ShownConv } }>(actions.markRead, {
      conv,
      seq,
    });
    ledger.readUpTo(device.user, conv, seq, markRead.read);
    device.see(markRead.conv);
  } else if (dice < 90) {
    const { ack } = await device.http.ask<{ ack: { delivered: number } }>(actions.ack, { conv, seq });
    ledger.deliveredUpTo(device.name, conv, seq, ack.delivered);
  } else if (dice < 95) {
    // by one device of the user alone: of two at once nobody could say which was the last
    if (index % 2 === 0) await mute(ledger, device, conv, random() < 0.5);
  } else await recall(ledger, device, conv, random);
}

async function send(ledger: Ledger, device: Device, conv: string): Promise<void> {
  const clientId = fresh('c');
  ledger.sent.set(clientId, { conv, user: device.user, seq: null, recalled: false });
  const input = { conv, clientId, contentType: 'TEXT', content: { text: clientId } };
  const { send: sent } = await device.http.ask<{ send: { event: { seq: number }; conv: ShownConv } }>(actions.send, {
    input,
  });
  ledger.sentAt(clientId, sent.event.seq);
  device.see(sent.conv);
}

async function mute(ledger: Ledger, device: Device, conv: string, muted: boolean): Promise<void> {
  await device.http.ask(actions.mute, { conv, muted });
  ledger.muted(device.user, conv, muted);
}

async function recall(ledger: Ledger, device: Device, conv: string, random: Seeded): Promise<void> {
  const own = [...ledger.sent].filter(([, row]) => row.user === device.user && row.conv === conv && row.seq !== null);
  if (own.length === 0) return;
  const [clientId, { seq }] = random.pick(own);
  await device.http.ask(actions.recall, { conv, seq });
  ledger.recalled(clientId);
}

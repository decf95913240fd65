// Holds the service to what it promised, at rest: nothing acknowledged is lost, no seq is missing or double, and every
// client shows what the database says, with nothing more happening.
import { setTimeout as pause } from 'node:timers/promises';
import { documents, type Device, type EventRow, type Look } from './device.js';
import type { Ledger } from './ledger.js';
import type { FaultWorld } from './world.js';

export interface Verdict {
  readonly violations: readonly string[];
  /** until the last client was right, from the moment when nothing more was asked */
  readonly rightAfterMs: number;
}

export async function judge(world: FaultWorld, withinMs = 30_000): Promise<Verdict> {
  const startedAt = performance.now();
  const look = async () => (await Promise.all(world.devices.map((device) => differences(world.ledger, device)))).flat();
  let behind = await look();
  while (behind.length > 0 && performance.now() - startedAt < withinMs) {
    await pause(50);
    behind = await look();
  }
  const rightAfterMs = Math.round(performance.now() - startedAt);
  const late = behind.map((line) => `not right within ${String(withinMs)} ms: ${line}`);
  const logs = await Promise.all([...world.convs.keys()].map((conv) => checkLog(world, conv)));
  return { violations: [...world.ledger.violations, ...late, ...logs.flat()], rightAfterMs };
}

/** What the device shows, against what the database says now. */
export async function differences(ledger: Ledger, device: Device): Promise<string[]> {
  const { convs, badge } = await device.http.ask<Look>(documents.look);
  const wrong: string[] = [];
  const compare = (what: string, shown: unknown, is: unknown) => {
    const [left, right] = [JSON.stringify(shown), JSON.stringify(is)];
    if (left !== right) wrong.push(`${device.name} shows ${what} as ${left}, it is ${right}`);
  };
  for (const { delivered, ...conv } of convs.nodes) {
    const { delivered: _, ...shown } = device.shown.get(conv.id) ?? { delivered };
    compare(`conv ${conv.id}`, shown, conv);
    const { through, acked } = device.holding(conv.id);
    compare(`the log of ${conv.id}`, { through, acked }, { through: conv.head, acked: delivered });
    wrong.push(...ledger.check(device.user, device.name, { ...conv, delivered }));
    compare(`unread of ${conv.id}`, unreadIn(device, conv), conv.unread);
  }
  compare('the badge', device.badge, badge);
  return wrong;
}

/** By the events that it holds (U1): none here is from before anybody's joining. */
function unreadIn({ user, held }: Device, { id, read }: { id: string; read: number }): number {
  const events = [...(held.get(id)?.events.values() ?? [])];
  return events.filter(({ seq, kind, sender, recalled }) => {
    return kind === 'MESSAGE' && seq > read && !recalled && sender?.id !== user;
  }).length;
}

/** The log from the start, as each of its members reads it, against what was sent. */
async function checkLog({ ledger, convs, devices }: FaultWorld, conv: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const device of devices.filter(({ user }) => convs.get(conv)?.includes(user))) {
    const events = await wholeLog(device, conv);
    const firstSeq = events[0]?.seq ?? 1;
    events.forEach(({ seq }, at) => {
      if (seq !== firstSeq + at)
        wrong.push(`L1: ${device.name} finds ${String(seq)} at ${String(firstSeq + at)} in ${conv}`);
    });
    const kept = device.held.get(conv)?.events ?? new Map<number, EventRow>();
    for (const event of events) {
      const own = kept.get(event.seq);
      if (JSON.stringify(own) !== JSON.stringify(event))
        wrong.push(`${device.name} holds ${JSON.stringify(own)}, the log of ${conv} ${JSON.stringify(event)}`);
    }
    wrong.push(
      ...compareSent(
        events,
        [...ledger.sent].filter(([, row]) => row.conv === conv),
      ),
    );
  }
  return [...new Set(wrong)];
}

type Sent = readonly (readonly [
  string,
  { readonly seq: number | null; readonly recalled: boolean; readonly user: string },
])[];

function compareSent(events: readonly EventRow[], sent: Sent): string[] {
  const wrong: string[] = [];
  const bySeq = new Map(events.map((event) => [event.seq, event]));
  for (const [clientId, { seq, recalled, user }] of sent) {
    const event = seq === null ? undefined : bySeq.get(seq);
    if (seq === null) wrong.push(`${clientId} was never acknowledged`);
    else if (event?.sender?.id !== user || event.recalled !== recalled || event.text !== (recalled ? null : clientId))
      wrong.push(`L3: ${clientId} was acknowledged at ${String(seq)}, there is ${JSON.stringify(event)}`);
  }
  const messages = events.filter(({ kind }) => kind === 'MESSAGE').length;
  if (messages !== sent.length) wrong.push(`L3: ${String(sent.length)} were sent, the log holds ${String(messages)}`);
  return wrong;
}

async function wholeLog(device: Device, conv: string): Promise<EventRow[]> {
  type Page = { sync: { items: { events: EventRow[]; through: number; hasMore: boolean }[] } };
  const events: EventRow[] = [];
  for (let after = 0; ;) {
    const [item] = (await device.http.ask<Page>(documents.sync, { from: [{ conv, after }] })).sync.items;
    if (!item) throw new Error(`no log of ${conv}`);
    events.push(...item.events);
    after = item.through;
    if (!item.hasMore) return events;
  }
}

// One answer per clientId, for ever: repeated at once, elsewhere, after the kick, the recall and retention.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FailpointGate } from '../model/failpoint-gate.js';
import { dump } from '../support/dump.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';
import { waitingBehind } from './waiting-behind.js';

const gate = new FailpointGate();
/** Whether the transaction that has come to its commit breaks instead. */
let breaks = (): boolean => false;
let world: World;
let ana: Actor, ben: Actor, cho: Actor;
/** Of ana (owner), ben and cho; head 2. */
let conv: string;

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);
const times = <T>(n: number, make: (n: number) => T): T[] => range(1, n).map(make);
const seqsOf = (events: readonly { readonly seq: number }[]) => events.map(({ seq }) => seq);
const newGroup = async () => (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
const trim = async (below: number) => {
  const { conversations } = world.app.deps.store;
  await conversations.raiseFloor(conv as never, below);
  await conversations.prune(conv as never, 1_000);
};
const behind = <A, B>(first: () => Promise<A>, second: () => Promise<B>) => waitingBehind(world, gate, first, second);

beforeAll(async () => {
  const failpoint: FailpointGate['failpoint'] = async (name) => {
    await gate.failpoint(name);
    if (name === 'before commit' && breaks()) throw new Error('the disk is on fire');
  };
  world = await startWorld({ overrides: { failpoint } });
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  breaks = () => false;
  conv = await newGroup();
});

describe('one clientId, one event', () => {
  test('[L3] the same 20 times at once: one event, equal answers', async () => {
    const clientId = fresh();
    const answers = await Promise.all(times(20, () => ben.send(conv, 'once', { clientId })));
    expect(tally(answers.map(({ duplicate }) => duplicate))).toEqual({ false: 1, true: 19 });
    for (const { event } of answers) expect(event).toEqual({ ...answers[0]?.event, seq: 3, text: 'once', clientId });
    expect(seqsOf(await ana.catchUp(conv))).toEqual([1, 2, 3]);
  });

  test('[L3] from another device of the sender it is a repeat, from another user it is another message', async () => {
    const { event } = await ben.send(conv, 'hi');
    const key = { clientId: event.clientId };
    expect(await world.asUser('ben').send(conv, 'hi', key)).toMatchObject({
      duplicate: true,
      event: { seq: event.seq, via: 'DEVICE' },
    });
    expect(await cho.send(conv, 'hi', key)).toMatchObject({ duplicate: false, event: { seq: event.seq + 1 } });
  });

  test('[L3] what was sent again may be written differently, where it means the same', async () => {
    const key = { clientId: fresh(), contentType: 'IMAGE', mentions: ['ana'] };
    const { event } = await ben.send(conv, '', { ...key, content: { url: 'https://a.example/i', width: 1 } });
    const other = {
      content: { width: 1, url: 'https://a.example/i' },
      quote: null,
      markReadUpTo: 2,
      mentions: ['ana', 'ana'],
    };
    expect(await ben.send(conv, '', { ...key, ...other })).toMatchObject({ duplicate: true, event });
  });

  test.each([
    ['text', { content: { text: 'b' } }],
    ['type', { contentType: 'FACE', content: { id: 'a' } }],
    ['quote', { quote: 3 }],
    ['mentions', { mentions: ['cho'] }],
    ['conversation', {}],
  ])('[L3] other content is a conflict and stores nothing: %s', async (what, more) => {
    await ana.send(conv, 'first');
    const clientId = fresh();
    await ben.send(conv, 'a', { clientId });
    const where = what === 'conversation' ? await newGroup() : conv;
    const before = await dump(world.app.deps.store.pool);
    const error = await refusalOf(ben.send(where, 'a', { clientId, ...more }));
    expect(error.extensions).toEqual({ code: 'IDEMPOTENCY_CONFLICT', retryable: false });
    expect(await dump(world.app.deps.store.pool)).toEqual(before);
  });

  test('[L3] one key into two conversations at once: one wins, the other is a conflict', async () => {
    for (let round = 0; round < 10; round++) {
      const [here, there, clientId] = [conv, await newGroup(), fresh()];
      const sends = [here, there, here, there].map(async (where) => ({
        where,
        code: await outcomeOf(ana.send(where, 'same', { clientId })),
      }));
      const answers = await Promise.all(sends);
      const winners = new Set(answers.filter(({ code }) => code === 'ok').map(({ where }) => where));
      expect(tally(answers.map(({ code }) => code))).toEqual({ ok: 2, IDEMPOTENCY_CONFLICT: 2 });
      expect(winners.size).toBe(1);
    }
  });

  test.each([
    ['commits', 'IDEMPOTENCY_CONFLICT', [3], [1, 2]],
    ['aborts', 'ok', [], [1, 2, 3]],
  ])('[L3] a send that waits for the key of another conversation, whose send %s', async (how, code, here, there) => {
    const [other, clientId] = [await newGroup(), fresh()];
    let broken = how === 'aborts';
    breaks = () => broken && !(broken = false);
    const [first, second] = await behind(
      () => outcomeOf(ana.send(conv, 'same', { clientId })),
      () => outcomeOf(ana.send(other, 'same', { clientId })),
    );
    expect([first, second]).toEqual([how === 'aborts' ? 'INTERNAL_SERVER_ERROR' : 'ok', code]);
    expect(seqsOf(await ben.catchUp(conv, 2))).toEqual(here);
    expect(seqsOf(await ana.catchUp(other))).toEqual(there);
  });

  const kick = () => ana.removeMember(conv, 'ben');
  test.each<[string, () => Promise<unknown>]>([
    ['a recall', () => ana.recall(conv, 3)],
    ['a kick', kick],
    ['retention', () => trim(4)],
    ['a floor whose rows are still there', () => world.app.deps.store.conversations.raiseFloor(conv as never, 4)],
    ['a recall and retention', () => ana.recall(conv, 3).then(() => trim(4))],
    [
      'a recall and a floor',
      () => ana.recall(conv, 3).then(() => world.app.deps.store.conversations.raiseFloor(conv as never, 4)),
    ],
    ['a kick and retention', () => kick().then(() => trim(5))],
    [
      'a recall, a kick and retention',
      () =>
        ana
          .recall(conv, 3)
          .then(kick)
          .then(() => trim(6)),
    ],
    [
      'a kick, a later recall and retention',
      () =>
        kick()
          .then(() => ana.recall(conv, 3))
          .then(() => trim(6)),
    ],
  ])('[L3] a repeat after %s answers the first event; other content and a fresh key do not', async (after, act) => {
    const document = `mutation ($input: SendInput!) { send(input: $input) { duplicate event {
      id seq kind contentType sender { id } clientId via createdAt recalled recalledBy content } } }`;
    type Sent = { send: { duplicate: boolean; event: Record<string, unknown> } };
    const input = { conv, clientId: fresh(), contentType: 'TEXT', content: { text: 'kept' } };
    const { event } = (await ben.ask<Sent>(document, { input })).send;
    await act();
    const { send } = await ben.ask<Sent>(document, { input });
    // where the log has gone on to after the kick is told to nobody who was kicked
    const recall = { recalled: true, recalledBy: after.includes('later recall') ? null : 4, content: null };
    expect(send).toEqual({ duplicate: true, event: after.includes('recall') ? { ...event, ...recall } : event });
    expect(await outcomeOf(ben.ask(document, { input: { ...input, content: { text: 'other' } } }))).toBe(
      'IDEMPOTENCY_CONFLICT',
    );
    const isFormer = after.includes('kick');
    expect(await outcomeOf(ben.send(conv, 'fresh'))).toBe(isFormer ? 'NOT_MEMBER' : 'ok');
  });
});

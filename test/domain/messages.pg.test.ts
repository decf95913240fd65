// Sending: dense seqs, one answer per clientId for ever, and what is decided only once the conversation's lock is held.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FailpointGate } from '../model/failpoint-gate.js';
import { outcomeOf, tally } from '../support/outcome.js';
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

describe('the log', () => {
  test('[L1] 500 parallel sends of which some abort inside the transaction: dense seqs, and later sends work', async () => {
    let commits = 0;
    breaks = () => ++commits % 7 === 0;
    const keys = times(500, () => fresh());
    const document = 'mutation ($input: SendInput!) { send(input: $input) { duplicate } }';
    const send = async (clientId: string, n: number) => {
      const input = { conv, clientId, contentType: 'TEXT', content: { text: clientId } };
      return (await [ana, ben, cho][n % 3]?.ask<{ send: { duplicate: boolean } }>(document, { input }))?.send;
    };
    const first = await Promise.all(keys.map((key, n) => outcomeOf(send(key, n)).catch(() => 'no answer')));
    breaks = () => false;
    const { ok = 0, INTERNAL_SERVER_ERROR: broken = 0, 'no answer': lost = 0 } = tally(first);
    expect(ok + broken + lost).toBe(500);
    expect(broken).toBeGreaterThan(50);
    const stored = (await ben.catchUp(conv)).slice(1);
    expect(seqsOf(stored)).toEqual(range(3, stored.length + 2));
    const isStored = new Set(stored.map(({ text }) => text));
    expect(stored.length).toBeGreaterThanOrEqual(ok); // an answer may be lost after the commit
    // what a client does that has had no answer: the same again; and some that have had one
    const repeated = keys.map((key, n) => ({ key, n })).filter(({ n }) => first[n] !== 'ok' || n < 30);
    for (const { key, n } of repeated) expect((await send(key, n))?.duplicate).toBe(isStored.has(key));
    const log = await ana.catchUp(conv);
    expect(seqsOf(log)).toEqual(range(1, 502));
    expect(
      log
        .slice(2)
        .map(({ text }) => text)
        .toSorted(),
    ).toEqual(keys.toSorted());
    expect((await cho.send(conv, 'after')).event.seq).toBe(503);
  }, 120_000);

  test('[L1] a refused send takes no seq', async () => {
    const { clientId } = (await ana.send(conv, 'one')).event;
    const stranger = await world.device('ben');
    const other = (await ana.createConv({})).conv.id;
    expect(await outcomeOf(ana.send(conv, 'two', { clientId }))).toBe('IDEMPOTENCY_CONFLICT');
    expect(await outcomeOf(ana.send(conv, ' '))).toBe('BAD_USER_INPUT');
    expect(await outcomeOf(ana.send(conv, 'three', { quote: 99 }))).toBe('BAD_USER_INPUT');
    expect(await outcomeOf(ana.send(conv, 'four', { markReadUpTo: 99 }))).toBe('CURSOR_AHEAD');
    expect(await outcomeOf(stranger.send(other, 'five'))).toBe('NOT_MEMBER');
    expect((await ana.send(other, 'six')).event.seq).toBe(2);
    expect((await ana.send(conv, 'seven')).event.seq).toBe(4);
  });

  test('[L2] whoever syncs while others send misses nothing: commit order is seq order', async () => {
    const sends = Promise.all(times(100, (n) => (n % 2 ? ana : ben).send(conv, `m${String(n)}`)));
    const state = { over: false };
    const ended = sends.finally(() => (state.over = true));
    const seen: number[] = [];
    let cursor = 0;
    let isLast: boolean;
    do {
      isLast = state.over;
      const [item] = (await cho.sync([{ conv, after: cursor }])).items;
      seen.push(...seqsOf(item?.events ?? []));
      cursor = item?.through ?? cursor;
    } while (!isLast);
    await ended;
    expect(seen).toEqual(range(2, 102));
  });

  test('[L4] the server says when: times never go back along the log', async () => {
    await Promise.all(times(30, (n) => (n % 2 ? ana : ben).send(conv, 'now')));
    const document = 'query ($conv: ID!) { history(conv: $conv) { nodes { createdAt } } }';
    const { history } = await ana.ask<{ history: { nodes: { createdAt: string }[] } }>(document, { conv });
    const at = history.nodes.map(({ createdAt }) => createdAt);
    expect(at).toHaveLength(32);
    expect(at).toEqual(at.toSorted());
  });
});

describe('decided under the lock', () => {
  test('[M2] [L1] 100 parallel sends with one kick of cho: cho sees exactly a prefix', async () => {
    const sends = times(100, (n) => (n % 2 ? ana : ben).send(conv, `m${String(n)}`));
    const kicked = Promise.race(sends).then(() => ana.removeMember(conv, 'cho'));
    await Promise.all([...sends, kicked]);
    const seen = await cho.catchUp(conv);
    expect(seqsOf(seen)).toEqual(range(2, seen.length + 1));
    expect(seen.at(-1)).toMatchObject({ contentType: 'MEMBER_KICK', content: { users: ['cho'] } });
    expect(seen.filter(({ contentType }) => contentType === 'MEMBER_KICK')).toHaveLength(1);
    expect(seqsOf(await ana.catchUp(conv))).toEqual(range(1, 103));
    expect((await cho.history(conv, { last: 1 })).nodes).toEqual([seen.at(-1)]);
    expect(await cho.conv(conv)).toMatchObject({ head: seen.at(-1)?.seq, joined: false });
  });

  test('[M5] [L1] 100 parallel sends by cho with one kick of cho: none lies after the kick, and no hole', async () => {
    const sends = times(100, (n) => cho.send(conv, `m${String(n)}`));
    const kicked = Promise.race(sends).then(() => ana.removeMember(conv, 'cho'));
    const codes = await Promise.all(sends.map(outcomeOf));
    await kicked;
    const log = await ana.catchUp(conv);
    expect(seqsOf(log)).toEqual(range(1, log.length));
    expect(log.at(-1)?.contentType).toBe('MEMBER_KICK');
    const stored = log.length - 3;
    expect(tally(codes)).toEqual(stored === 100 ? { ok: 100 } : { ok: stored, NOT_MEMBER: 100 - stored });
  });

  const kickOf = (user: string) => () => ana.removeMember(conv, user);
  test.each<{
    late: string;
    behind: string;
    second: () => Promise<unknown>;
    first: () => Promise<unknown>;
    code: string;
  }>([
    {
      late: 'a send',
      behind: 'a kick',
      second: () => cho.send(conv, 'late'),
      first: kickOf('cho'),
      code: 'NOT_MEMBER',
    },
    {
      late: 'a send',
      behind: 'leaving',
      second: () => cho.send(conv, 'late'),
      first: () => cho.leave(conv),
      code: 'NOT_MEMBER',
    },
    { late: 'a recall', behind: 'a kick', second: () => cho.recall(conv, 3), first: kickOf('cho'), code: 'NOT_MEMBER' },
    {
      late: 'a quote',
      behind: 'its recall',
      second: () => cho.send(conv, '', { content: { text: 'see' }, quote: 4 }),
      first: () => ana.recall(conv, 4),
      code: 'BAD_USER_INPUT',
    },
    { late: 'a leave', behind: 'a kick', second: () => cho.leave(conv), first: kickOf('cho'), code: 'ok' },
    { late: 'a kick', behind: 'the same kick', second: kickOf('cho'), first: kickOf('cho'), code: 'ok' },
    {
      late: 'a recall',
      behind: 'the same recall',
      second: () => ana.recall(conv, 3),
      first: () => cho.recall(conv, 3),
      code: 'ok',
    },
  ])('[M5] $late that waited behind $behind is judged by what holds then: $code', async ({ first, second, code }) => {
    await cho.send(conv, 'mine');
    await ana.send(conv, 'hers');
    const [, late] = await behind(first, () => outcomeOf(second()));
    expect(late).toBe(code);
    expect((await ana.conv(conv)).head).toBe(5);
  });

  test('[M5] a send that waited behind the own return is stored after it, and its key behind the same key is a repeat', async () => {
    await ana.removeMember(conv, 'cho');
    const clientId = fresh();
    const [, sent] = await behind(
      () => ana.addMembers(conv, ['cho']),
      () => cho.send(conv, 'back', { clientId }),
    );
    expect(sent).toMatchObject({ duplicate: false, event: { seq: 5 } });
    const next = { clientId: fresh() };
    const [one, two] = await behind(
      () => cho.send(conv, 'x', next),
      () => cho.send(conv, 'x', next),
    );
    expect([one.duplicate, two.duplicate, one.event.seq, two.event.seq]).toEqual([false, true, 6, 6]);
  });

  test('[M5] the audience of a hint is read under the lock: who was added while the send waited is told of it', async () => {
    await ana.removeMember(conv, 'cho');
    const hints = await world.app.subscribe(cho.credential, 'subscription { message { seq resync } }');
    await hints.next();
    await behind(
      () => ana.addMembers(conv, ['cho']),
      () => ben.send(conv, 'welcome'),
    );
    await hints.until(({ data }) => (data?.['message'] as { seq: number }).seq === 5);
    await hints.socket.close();
  });
});

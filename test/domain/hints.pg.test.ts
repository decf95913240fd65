// Live hints over real sockets and event streams: when they begin, what they say, whom they reach.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listenToAll, listenToMessages, listenToReads } from '../support/live-hints.js';
import { countStatements } from '../support/statements.js';
import { startWorld, type Actor, type World } from '../support/world.js';

let failing = false;
let world: World;
let ana: Actor;
let ben1: Actor;
let ben2: Actor;
let cho: Actor;

beforeAll(async () => {
  world = await startWorld({
    overrides: {
      failpoint: (name) =>
        failing && name === 'before commit'
          ? Promise.reject(new Error('the transaction is to fail'))
          : Promise.resolve(),
    },
  });
  [ana, ben1, ben2, cho] = await Promise.all([
    world.device('ana', 'ana-1'),
    world.device('ben', 'ben-1'),
    world.device('ben', 'ben-2'),
    world.device('cho', 'cho-1'),
  ]);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const group = async (members: readonly string[] = ['ben']) => (await ana.createConv({ members })).conv.id;

const everything = `subscription { message {
  resync conversationType contentType kind seq head originDevice sender { id }
  conv { id head read unread } event { seq text recalled content } target { seq recalled content } } }`;

describe('when it begins', () => {
  test.each(['message', 'readChanged'])('[H2] the first item of %s is a resync, and nothing else', async (field) => {
    const live = await ben1.app.subscribe(
      ben1.credential,
      `subscription { ${field} { resync conversationType contentType conv { id } head originDevice } }`,
    );
    const { data } = await live.next();
    const nothing = { contentType: null, conv: null, head: null, originDevice: null };
    expect(data?.[field]).toEqual({ resync: 'START', conversationType: 'NONE', ...nothing });
    await live.socket.close();
  });

  test('[H2] what is sent as soon as the first item is there always arrives', async () => {
    const conv = await group();
    for (let turn = 0; turn < 30; turn++) {
      const live = await listenToMessages(ben1);
      const { event } = await ana.send(conv, 'at once');
      expect((await live.next()).seq).toBe(event.seq);
      await live.socket.close();
    }
  });

  test('[H2] the same over server-sent events', async () => {
    const conv = await group();
    const stream = await world.app.sse(ben1.credential, everything);
    expect((await stream.next()).data?.['message']).toMatchObject({ resync: 'START' });
    const { event } = await ana.send(conv, 'streamed');
    expect((await stream.next()).data?.['message']).toMatchObject({ seq: event.seq, event: { text: 'streamed' } });
    stream.close();
  });

  test('[H2] badgeChanged begins with the badge now', async () => {
    const live = await ben1.app.subscribe(ben1.credential, `subscription { badgeChanged { id unread } }`);
    expect((await live.next()).data?.['badgeChanged']).toEqual({ id: 'ben', unread: (await ben1.badge()).unread });
    await live.socket.close();
  });
});

describe('what it says', () => {
  test('[H1] [H10] a message hint has the facts, and loads what was selected beyond them', async () => {
    const conv = await group();
    const live = await ben1.app.subscribe(ben1.credential, everything);
    await live.next();
    await ana.send(conv, 'hello');
    expect((await live.next()).data?.['message']).toEqual({
      resync: null,
      conversationType: 'GROUP',
      contentType: 'TEXT',
      kind: 'MESSAGE',
      seq: 3,
      head: 3,
      originDevice: null, // somebody else's
      sender: { id: 'ana' },
      conv: { id: conv, head: 3, read: 0, unread: 1 },
      event: { seq: 3, text: 'hello', recalled: false, content: { text: 'hello' } },
      target: null,
    });
    await ana.recall(conv, 3);
    expect((await live.next()).data?.['message']).toMatchObject({
      kind: 'RECALL',
      contentType: 'RECALL',
      seq: 4,
      conv: { head: 4, unread: 0 },
      target: { seq: 3, recalled: true, content: null },
    });
    await live.socket.close();
  });

  test('[H1] scenario 31: on every hint, a query finds what it speaks of', async () => {
    const conv = await group();
    const messages = await listenToMessages(ben2);
    const reads = await listenToReads(ben2);
    for (let turn = 0; turn < 20; turn++) {
      const { event } = await ana.send(conv, 'look');
      await messages.until(({ seq }) => seq === event.seq);
      expect((await ben2.conv(conv)).head).toBeGreaterThanOrEqual(event.seq);
      await ben1.markRead(conv, event.seq);
      const { read } = await reads.until((row) => row.read === event.seq);
      expect((await ben2.conv(conv)).read).toBeGreaterThanOrEqual(read);
    }
    await Promise.all([messages.socket.close(), reads.socket.close()]);
  });

  test('[H1] a transaction that rolls back is told to nobody', async () => {
    const conv = await group();
    await ana.send(conv, 'before');
    const live = await listenToAll(ben2);
    failing = true;
    const refused = await Promise.allSettled([
      ana.send(conv, 'lost'),
      ben1.markRead(conv, 3),
      ana.removeMember(conv, 'ben'),
      ana.setMuted(conv, true),
    ]);
    failing = false;
    expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
    await ana.send(conv, 'after');
    expect(await live.next()).toMatchObject({ __typename: 'MessageHint', seq: 4 });
    await live.socket.close();
  });

  test('[H1] nothing selected beyond the hint means no query', async () => {
    const conv = await group();
    const [messages, reads] = [await listenToMessages(ben2), await listenToReads(ben2)];
    const work = async () => {
      const { event } = await ana.send(conv, 'cheap');
      await messages.until(({ seq }) => seq === event.seq);
      await ben1.ask(`mutation ($conv: ID!, $seq: Seq!) { markRead(conv: $conv, seq: $seq) { read } }`, {
        conv,
        seq: event.seq,
      });
      await reads.until(({ read }) => read === event.seq);
    };
    const seen = await countStatements('conversations.seen', work);
    // the sender's own answer selects conv; the two hints ask for nothing
    expect(seen).toBe(1);
    await Promise.all([messages.socket.close(), reads.socket.close()]);
  });

  test('[H1] one statement serves all subscribers of this node who selected the event', async () => {
    const conv = await group(['ben', 'cho']);
    const actors = [ben1, ben2, cho, ben1, ben2, cho, cho, cho];
    const lives = await Promise.all(actors.map((actor) => actor.app.subscribe(actor.credential, everything)));
    await Promise.all(lives.map((live) => live.next()));
    const statements = await countStatements('messages.seen', async () => {
      await ana.ask(`mutation ($input: SendInput!) { send(input: $input) { duplicate } }`, {
        input: { conv, clientId: 'fan-out', contentType: 'TEXT', content: { text: 'to all' } },
      });
      const items = await Promise.all(lives.map((live) => live.next()));
      for (const { data } of items) expect(data?.['message']).toMatchObject({ event: { text: 'to all' } });
    });
    // one for the sender's answer, one for the eight of them
    expect(statements).toBeLessThanOrEqual(2);
    await Promise.all(lives.map((live) => live.socket.close()));
  });
});

describe('whom it reaches', () => {
  test('[H6] every device of the user, the origin too, and no other user', async () => {
    const conv = await group();
    const [own, other, stranger] = await Promise.all([listenToReads(ben1), listenToReads(ben2), listenToAll(cho)]);
    await ana.send(conv, 'one');
    await ben1.markRead(conv, 3);
    for (const live of [own, other])
      expect(await live.next()).toMatchObject({ read: 3, unread: 0, originDevice: 'ben-1' });
    const mine = (await cho.createConv({})).conv.id;
    expect(await stranger.next()).toMatchObject({ conv: { id: mine } });
    await Promise.all([own, other, stranger].map((live) => live.socket.close()));
  });

  test.each<[string, (conv: string) => Promise<unknown>, Record<string, unknown>]>([
    ['a mute', (conv) => ben1.setMuted(conv, true), { __typename: 'ConvHint', contentType: 'MEMBER_SETTING_UPDATE' }],
    [
      'being added',
      (conv) => ana.removeMember(conv, 'ben').then(() => ana.addMembers(conv, ['ben'])),
      { __typename: 'MessageHint', contentType: 'MEMBER_INVITE' },
    ],
    [
      'being removed',
      (conv) => ana.removeMember(conv, 'ben'),
      { __typename: 'MessageHint', contentType: 'MEMBER_KICK' },
    ],
    ['leaving', (conv) => ben1.leave(conv), { __typename: 'MessageHint', contentType: 'MEMBER_QUIT' }],
    [
      'a recall',
      (conv) => ana.send(conv, 'x').then(({ event }) => ana.recall(conv, event.seq)),
      { __typename: 'MessageHint', contentType: 'RECALL' },
    ],
    [
      'a new group',
      () => ana.createConv({ members: ['ben'] }),
      { __typename: 'MessageHint', contentType: 'MEMBER_INVITE' },
    ],
    [
      'a new direct conversation',
      () => cho.createConv({ type: 'DIRECT', members: ['ben'] }),
      { __typename: 'ConvHint', contentType: 'DIRECT_CREATE' },
    ],
  ])('[H9] %s is told to all of the user’s devices', async (_, change, expected) => {
    const conv = await group();
    const lives = await Promise.all([listenToAll(ben1), listenToAll(ben2)]);
    await change(conv);
    for (const live of lives)
      expect(await live.until((row) => row['contentType'] === expected['contentType'])).toMatchObject(expected);
    await Promise.all(lives.map((live) => live.socket.close()));
  });

  test('[H9] a repeated setting changes nothing and tells nothing', async () => {
    const conv = await group();
    await ben1.setMuted(conv, true);
    const live = await listenToAll(ben2);
    await ben1.setMuted(conv, true);
    await ana.send(conv, 'next');
    expect(await live.next()).toMatchObject({ __typename: 'MessageHint' });
    await live.socket.close();
  });
});

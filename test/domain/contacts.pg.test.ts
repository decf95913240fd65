// Contacts: what each verb does from each state, who is told, and what a block stops.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { act, ask, befriend, contactsOf, listenToChanges, requestsOf, update } from '../support/contacts.js';
import { listenToMessages } from '../support/live-hints.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor;
/** ids of two users who have nothing to do with each other yet */
let a: string, b: string;

type Row = Readonly<Record<string, unknown>>;
const sql = (text: string, ...values: unknown[]) => world.app.deps.store.pool.query<Row>(text, values);
const directOf = async () => (await ana.createConv({ type: 'DIRECT', members: [b] })).conv;
const active = async (actor: Actor) => (await contactsOf(actor)).map(({ id }) => id);
/** Each user's change numbers: none twice, for two changes are two. */
async function expectNumbersOnce(): Promise<void> {
  const { rows } = await sql(`
    SELECT user_id, change_no, count(*) FROM (
      SELECT user_id, change_no FROM members UNION ALL SELECT user_id, change_no FROM contacts
      UNION ALL SELECT from_id, from_change_no FROM contact_requests UNION ALL SELECT to_id, to_change_no FROM contact_requests) n
     WHERE change_no > 0 GROUP BY 1, 2 HAVING count(*) > 1`);
  expect(rows).toEqual([]);
}

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await expectNumbersOnce();
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  [a, b] = [fresh('ana-'), fresh('ben-')];
  await world.users(a, b);
  [ana, ben] = [await world.device(a), await world.device(b)];
});

describe('becoming contacts', () => {
  test('[K4] a request waits on both sides; accepting it makes both directions, and one event in the direct conversation', async () => {
    const pending = { from: { id: a }, to: { id: b }, state: 'PENDING', text: 'it is me', handledAt: null };
    expect(await ask(ana, b, 'it is me')).toEqual({ contact: null, request: pending });
    expect(await requestsOf(ben)).toEqual([pending]);
    expect(await requestsOf(ana, { sent: true })).toEqual([pending]);
    expect(await requestsOf(ana)).toEqual([]);
    const { contact, request } = await act(ben, 'acceptContact', a);
    expect(contact).toMatchObject({ id: a, active: true, remark: null, muted: false, pinned: false, blocked: false });
    expect(request).toMatchObject({ state: 'ACCEPTED', handledAt: expect.any(String) as string });
    expect([await active(ana), await active(ben)]).toEqual([[b], [a]]);
    expect(await requestsOf(ben, { state: 'PENDING' })).toEqual([]);
    const conv = await directOf();
    expect(await ana.catchUp(conv.id)).toMatchObject([
      { seq: 1, kind: 'NOTICE', contentType: 'FRIEND_ADD', sender: { id: b }, content: { users: [a, b].toSorted() } },
    ]);
    expect(conv.unread).toBe(0);
  });

  test('[K2] asking somebody who has asked already accepts: crossed requests become one friendship', async () => {
    await ask(ana, b);
    const { request } = await ask(ben, a);
    expect(request).toMatchObject({ from: { id: a }, to: { id: b }, state: 'ACCEPTED' });
    expect([await active(ana), await active(ben)]).toEqual([[b], [a]]);
    expect(await requestsOf(ben, { sent: true })).toEqual([]);
  });

  test('[K1] [K2] crossed requests at the same moment, 20 times: one friendship and one event each', async () => {
    for (let turn = 0; turn < 20; turn++) {
      [a, b] = [fresh('ana-'), fresh('ben-')];
      await world.users(a, b);
      const [one, other] = [world.asUser(a), world.asUser(b)];
      await Promise.all([ask(one, b), ask(other, a)]);
      expect([await active(one), await active(other)]).toEqual([[b], [a]]);
      const conv = (await one.createConv({ type: 'DIRECT', members: [b] })).conv.id;
      expect((await one.catchUp(conv)).map(({ contentType }) => contentType)).toEqual(['FRIEND_ADD']);
    }
  });

  test.each([['refuseContact'], ['acceptContact']] as const)(
    '[K3] of ten parallel answers, acceptContact and %s, one wins; the others get CONFLICT with the outcome',
    async (other) => {
      await ask(ana, b);
      const devices = await Promise.all(Array.from({ length: 10 }, () => world.device(b)));
      const answers = await Promise.allSettled(
        devices.map((device, n) => act(device, n % 2 === 0 ? 'acceptContact' : other, a)),
      );
      expect(tally(answers.map(({ status }) => status))).toEqual({ fulfilled: 1, rejected: 9 });
      const [{ state } = { state: '' }] = await requestsOf(ben);
      for (const answer of answers) {
        if (answer.status === 'rejected') {
          expect(answer.reason).toMatchObject({ code: 'CONFLICT', extensions: { outcome: state, retryable: false } });
        }
      }
      expect(await active(ana)).toEqual(state === 'ACCEPTED' ? [b] : []);
      expect((await ana.catchUp((await directOf()).id)).length).toBe(state === 'ACCEPTED' ? 1 : 0);
    },
  );

  test.each([
    ['refuseContact', 'REFUSED'],
    ['withdrawContact', 'WITHDRAWN'],
  ] as const)('[K2] [K3] after %s the request is %s; asking again opens the same one', async (verb, state) => {
    await ask(ana, b, 'first');
    const [actor, other] = verb === 'refuseContact' ? [ben, a] : [ana, b];
    expect((await act(actor, verb, other)).request).toMatchObject({ state, text: 'first' });
    expect(await outcomeOf(act(ben, 'acceptContact', a))).toBe('CONFLICT');
    expect(await outcomeOf(act(actor, verb, other))).toBe('CONFLICT');
    expect((await ask(ana, b, 'second')).request).toMatchObject({ state: 'PENDING', text: 'second', handledAt: null });
    expect(await requestsOf(ben)).toHaveLength(1);
    await act(ben, 'acceptContact', a);
    expect(await active(ana)).toEqual([b]);
  });

  test('[K2] asking a contact changes nothing; so does asking twice with the same words', async () => {
    await ask(ana, b, 'hello');
    const number = async () => (await sql('SELECT change_no FROM users WHERE id = $1', b)).rows;
    const before = await number();
    await ask(ana, b, 'hello');
    expect(await number()).toEqual(before);
    await act(ben, 'acceptContact', a);
    const after = await number();
    expect(await ask(ana, b)).toMatchObject({ request: null, contact: { active: true } });
    expect(await number()).toEqual(after);
  });

  test('[K3] answering what was never asked is BAD_USER_INPUT, and so is one’s own name or an unknown one', async () => {
    for (const verb of ['acceptContact', 'refuseContact', 'withdrawContact'] as const) {
      expect(await outcomeOf(act(ana, verb, b))).toBe('BAD_USER_INPUT');
    }
    expect(await outcomeOf(ask(ana, a))).toBe('BAD_USER_INPUT');
    expect(await outcomeOf(ask(ana, 'nobody'))).toBe('BAD_USER_INPUT');
  });
});

describe('deleting and adding again', () => {
  test('[K5] is one-sided: the other keeps the contact; adding again is silent and begins anew', async () => {
    await befriend(ana, ben, [a, b]);
    const conv = await directOf();
    await update(ana, b, { remark: 'benny', muted: true, pinned: true });
    expect((await act(ana, 'deleteContact', b)).contact).toMatchObject({ active: false });
    expect([await active(ana), await active(ben)]).toEqual([[], [a]]);
    expect(await ask(ana, b)).toMatchObject({
      request: null,
      contact: { active: true, remark: null, muted: false, pinned: false },
    });
    expect((await ana.catchUp(conv.id)).map(({ contentType }) => contentType)).toEqual(['FRIEND_ADD']);
  });

  test('[K5] when both have deleted, it takes a request; the direct conversation is the same as before', async () => {
    await befriend(ana, ben, [a, b]);
    const conv = await directOf();
    await act(ana, 'deleteContact', b);
    await act(ben, 'deleteContact', a);
    expect((await ask(ana, b)).request).toMatchObject({ state: 'PENDING' });
    await act(ben, 'acceptContact', a);
    expect((await directOf()).id).toBe(conv.id);
    expect((await ana.catchUp(conv.id)).map(({ contentType }) => contentType)).toEqual(['FRIEND_ADD', 'FRIEND_ADD']);
  });

  test('[K5] whom the other has blocked cannot come back', async () => {
    await befriend(ana, ben, [a, b]);
    await act(ana, 'deleteContact', b);
    await act(ben, 'blockContact', a);
    expect(await outcomeOf(ask(ana, b))).toBe('BLOCKED');
    await act(ben, 'unblockContact', a);
    expect((await ask(ana, b)).contact).toMatchObject({ active: true });
  });
});

describe('blocking', () => {
  test('[K6] stops direct sends and requests of the blocked, not those of the blocker, nor reading; a repeat still answers', async () => {
    const conv = (await directOf()).id;
    const clientId = fresh();
    await ana.send(conv, 'before', { clientId });
    await act(ben, 'blockContact', a);
    const refused = await refusalOf(ana.send(conv, 'after'));
    expect(refused).toMatchObject({ code: 'BLOCKED', extensions: { retryable: false } });
    expect(await ana.send(conv, 'before', { clientId })).toMatchObject({ duplicate: true });
    expect(await outcomeOf(ask(ana, b))).toBe('BLOCKED');
    await ben.send(conv, 'from the blocker');
    expect(await ana.catchUp(conv)).toHaveLength(2);
    expect(await ana.markRead(conv, 2)).toMatchObject({ unread: 0 });
    expect((await contactsOf(ben, true)).map(({ id }) => id)).toEqual([a]);
    expect(await contactsOf(ben)).toEqual([]);
    await act(ben, 'unblockContact', a);
    await ana.send(conv, 'after all');
  });

  test('[K6] does not reach into groups', async () => {
    const { conv } = await ana.createConv({ members: [b] });
    await act(ben, 'blockContact', a);
    await ana.send(conv.id, 'to the group');
  });

  test('[K6] [M5] sends racing a block: none that was accepted lies behind the block’s answer', async () => {
    const conv = (await directOf()).id;
    let blocked = false;
    const late: unknown[] = [];
    const sendUntilBlocked = async () => {
      for (;;) {
        const begunAfter = blocked;
        const outcome = await outcomeOf(ana.send(conv, 'again'));
        if (outcome === 'BLOCKED') return;
        if (begunAfter) late.push(outcome);
      }
    };
    const senders = Array.from({ length: 6 }, sendUntilBlocked);
    await act(ben, 'blockContact', a);
    blocked = true;
    await Promise.all(senders);
    expect(late).toEqual([]);
  });

  test('[K6] accepting somebody who has blocked me since is BLOCKED; asking somebody I have blocked unblocks them', async () => {
    await ask(ana, b);
    await act(ana, 'blockContact', b);
    expect(await outcomeOf(act(ben, 'acceptContact', a))).toBe('BLOCKED');
    await ask(ana, b, 'please');
    expect(await contactsOf(ana, true)).toEqual([]);
    await act(ben, 'acceptContact', a);
    expect(await active(ana)).toEqual([b]);
  });
});

describe('CONTACTS_ONLY', () => {
  test('[K7] only contacts open a direct conversation and write in it; who was deleted finds out by the refusal', async () => {
    const { limits } = world.app.deps;
    await using strict = await startWorld({ config: { limits: { ...limits, contactsOnly: true } } });
    const [one, other] = [await strict.device('ana'), await strict.device('ben')];
    const open = () => one.createConv({ type: 'DIRECT', members: ['ben'] });
    expect(await outcomeOf(open())).toBe('FORBIDDEN');
    await befriend(one, other, ['ana', 'ben']);
    const conv = (await open()).conv.id;
    await one.send(conv, 'hello');
    await act(other, 'deleteContact', 'ana');
    expect(await outcomeOf(one.send(conv, 'still there?'))).toBe('FORBIDDEN');
    expect(await outcomeOf(other.send(conv, 'no'))).toBe('FORBIDDEN');
    expect((await strict.service.createConv({ type: 'DIRECT', owner: 'ana', members: ['cho'] })).duplicate).toBe(false);
  });
});

describe('who is told', () => {
  test('[K8] a request: the one asked and the asker’s own devices; the answer: both; the friendship: both, with its event', async () => {
    const [hers, his, herOther] = await Promise.all([ana, ben, await world.device(a)].map(listenToChanges));
    const messages = await listenToMessages(ana);
    await ask(ana, b, 'hi');
    const received = {
      contentType: 'FRIEND_REQUEST_RECEIVED',
      change: { contactRequest: { state: 'PENDING', text: 'hi' } },
    };
    expect(await his?.next()).toMatchObject({ ...received, originDevice: null });
    const { originDevice } = (await hers?.next()) ?? {};
    expect(originDevice).toEqual(expect.any(String));
    expect(await herOther?.next()).toMatchObject({ ...received, originDevice });
    await act(ben, 'acceptContact', a);
    for (const told of [hers, his, herOther]) {
      expect(await told?.next()).toMatchObject({
        contentType: 'FRIEND_REQUEST_APPROVED',
        change: { contactRequest: { state: 'ACCEPTED' } },
      });
      expect(await told?.next()).toMatchObject({ contentType: 'FRIEND_ADD', change: { contact: { active: true } } });
    }
    expect(await messages.next()).toMatchObject({ seq: 1, contentType: 'FRIEND_ADD' });
  });

  test('[K8] deleting, blocking and settings are told to the actor’s devices alone', async () => {
    await befriend(ana, ben, [a, b]);
    const [hers, his] = [await listenToChanges(await world.device(a)), await listenToChanges(ben)];
    await update(ana, b, { remark: 'benny' });
    expect(await hers.next()).toMatchObject({ contentType: 'FRIEND_UPDATE', change: { contact: { remark: 'benny' } } });
    await act(ana, 'blockContact', b);
    expect(await hers.next()).toMatchObject({ contentType: 'FRIEND_BLOCK', change: { contact: { blocked: true } } });
    await act(ana, 'unblockContact', b);
    expect(await hers.next()).toMatchObject({ contentType: 'FRIEND_UNBLOCK' });
    await act(ana, 'deleteContact', b);
    expect(await hers.next()).toMatchObject({ contentType: 'FRIEND_DELETE', change: { contact: { active: false } } });
    // the next thing that ben hears is his own
    await update(ben, a, { pinned: true });
    expect(await his.next()).toMatchObject({
      contentType: 'FRIEND_UPDATE',
      change: { contact: { id: a, pinned: true } },
    });
  });

  test('[K8] a new name is told to friends; the same name again, and to who is no friend any longer, is not', async () => {
    await befriend(ana, ben, [a, b]);
    const his = await listenToChanges(ben);
    const rename = (name: string) =>
      world.service.ask('mutation ($i: UpsertUserInput!) { upsertUser(input: $i) { user { id } } }', {
        i: { id: a, name },
      });
    await rename(a);
    await rename('Ana');
    expect(await his.next()).toMatchObject({ contentType: 'FRIEND_INFO_UPDATED', change: { contact: { id: a } } });
    await act(ben, 'deleteContact', a);
    expect(await his.next()).toMatchObject({ contentType: 'FRIEND_DELETE' });
    await rename('Anna');
    await update(ben, a, {}).catch(() => undefined);
    await act(ben, 'blockContact', a);
    expect(await his.next()).toMatchObject({ contentType: 'FRIEND_BLOCK' });
  });

  test('[K5] settings: what is absent stays, null clears a remark, the limit is 16 characters; of a stranger there are none', async () => {
    await befriend(ana, ben, [a, b]);
    await update(ana, b, { remark: 'benny', pinned: true });
    expect((await update(ana, b, { muted: true })).contact).toMatchObject({
      remark: 'benny',
      pinned: true,
      muted: true,
    });
    expect((await update(ana, b, { remark: null })).contact).toMatchObject({ remark: null, pinned: true });
    expect(await refusalOf(update(ana, b, { remark: 'x'.repeat(17) }))).toMatchObject({ extensions: { limit: 16 } });
    expect(await outcomeOf(update(ana, 'cho', { muted: true }))).toBe('BAD_USER_INPUT');
  });
});

// Groups: what each change appends, who is told, whom a mute stops, what pins show, and how a group ends.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDissolving } from '../../src/domain/dissolving.js';
import { group, groupOf } from '../support/groups.js';
import { listenToAll, listenToMessages } from '../support/live-hints.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, cho: Actor;
/** Of ana (owner), ben and cho. Head 2. */
let conv: string;

const last = async (actor: Actor, n: number) => (await actor.catchUp(conv)).slice(-n);
const until = new Date(Date.now() + 3_600_000).toISOString();

beforeAll(async () => {
  world = await startWorld();
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben', 'cho'] })).conv.id;
});

describe('facts of the whole', () => {
  test('[C4] each kind of change is an event that does not count, raises infoVersion, and changes no member’s row', async () => {
    const rows = () =>
      world.app.deps.store.pool.query('SELECT * FROM members WHERE conv_id = $1 ORDER BY user_id', [conv]);
    const before = (await rows()).rows;
    const input = {
      conv,
      title: 'Hiking',
      notice: 'at\nten',
      avatarUrl: 'https://example.org/a.png',
      joinPolicy: 'OPEN',
    };
    const { conv: after } = await group(ana, 'updateConv', { input });
    expect(after).toMatchObject({
      title: 'Hiking',
      notice: 'at\nten',
      avatarUrl: input.avatarUrl,
      infoVersion: 3,
      head: 5,
    });
    expect(await last(ben, 3)).toMatchObject([
      { kind: 'NOTICE', contentType: 'NAME_UPDATE', content: { title: 'Hiking' } },
      { kind: 'NOTICE', contentType: 'NOTICE_UPDATE', content: { notice: 'at\nten' } },
      { contentType: 'GROUP_INFO_UPDATE', content: { avatarUrl: input.avatarUrl, joinPolicy: 'OPEN' } },
    ]);
    expect((await rows()).rows).toEqual(before);
    expect(await ben.conv(conv)).toMatchObject({ unread: 0, title: 'Hiking' });
  });

  test('[G6] what is said already is said in vain: no event', async () => {
    await group(ana, 'updateConv', { input: { conv, title: 'Hiking', notice: 'x' } });
    const again = await group(ana, 'updateConv', {
      input: { conv, title: 'Hiking', notice: 'x', historyVisible: false },
    });
    expect(again.conv).toMatchObject({ head: 4, infoVersion: 2 });
    expect((await group(ana, 'updateConv', { input: { conv, notice: null } })).conv).toMatchObject({
      notice: null,
      head: 5,
    });
  });

  test('[H9] every device of every member is told', async () => {
    const [his, hers] = [await listenToMessages(ben), await listenToMessages(ana)];
    await group(ana, 'updateConv', { input: { conv, title: 'Hiking' } });
    for (const live of [his, hers]) expect(await live.next()).toMatchObject({ seq: 3, contentType: 'NAME_UPDATE' });
  });
});

describe('roles', () => {
  test('[G1] [G6] an admin is made and unmade; a mute ends with it; there are at most 3', async () => {
    await group(ana, 'muteMember', { conv, user: 'ben', until });
    await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
    expect(await groupOf(ben, conv)).toMatchObject({ myRole: 'ADMIN', silencedUntil: null });
    await ben.send(conv, 'not muted');
    await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
    await group(ana, 'setRole', { conv, user: 'ben', role: 'MEMBER' });
    expect((await ben.catchUp(conv)).map(({ contentType }) => contentType).slice(1)).toEqual([
      'MEMBER_MUTED',
      'ADMIN_ADD',
      'TEXT',
      'ADMIN_REMOVE',
    ]);
    const many = Array.from({ length: 4 }, () => fresh('admin-'));
    await world.users(...many);
    await ana.addMembers(conv, many);
    const outcomes = await Promise.all(
      many.map((user) => outcomeOf(group(ana, 'setRole', { conv, user, role: 'ADMIN' }))),
    );
    expect(tally(outcomes)).toEqual({ ok: 3, BAD_USER_INPUT: 1 });
    expect(await outcomeOf(group(ana, 'setRole', { conv, user: 'ben', role: 'OWNER' }))).toBe('BAD_USER_INPUT');
    expect(await outcomeOf(group(ana, 'setRole', { conv, user: 'nobody', role: 'ADMIN' }))).toBe('BAD_USER_INPUT');
  });

  test('[G1] the owner hands the group on, once, however many ask at the same moment; then may leave', async () => {
    const outcomes = await Promise.all(
      ['ben', 'cho', 'ben', 'cho'].map((user) => outcomeOf(group(ana, 'transferConv', { conv, user }))),
    );
    expect(tally(outcomes)).toEqual({ ok: 1, FORBIDDEN: 3 });
    const [event] = await last(ana, 1);
    expect(event).toMatchObject({ contentType: 'OWNER_TRANSFER', content: { from: 'ana' } });
    const roles = await Promise.all([ana, ben, cho].map(async (actor) => (await actor.conv(conv)).myRole));
    expect(tally(roles)).toEqual({ OWNER: 1, MEMBER: 2 });
    await ana.leave(conv);
  });

  test('[H9] a nickname is told to those online and found in the members; it is no event', async () => {
    const live = await listenToAll(ben);
    await group(cho, 'setNickname', { conv, nickname: 'Cho-Cho' });
    expect(await live.until((row) => row['__typename'] === 'ConvHint')).toMatchObject({
      contentType: 'MEMBER_NICKNAME_UPDATE',
    });
    const document = 'query ($id: ID!) { conv(id: $id) { head members { nodes { user { id } nickname } } } }';
    expect(await ben.ask(document, { id: conv })).toMatchObject({
      conv: { head: 2, members: { nodes: [{ nickname: null }, { nickname: null }, { nickname: 'Cho-Cho' }] } },
    });
  });
});

describe('mutes', () => {
  test('[G2] [G6] a muted member’s send is MUTED, also after leaving and coming back; an old message still answers', async () => {
    const clientId = fresh();
    await ben.send(conv, 'before', { clientId });
    await group(ana, 'muteMember', { conv, user: 'ben', until });
    expect(await refusalOf(ben.send(conv, 'x'))).toMatchObject({ code: 'MUTED', extensions: { retryable: false } });
    expect((await groupOf(ben, conv)).silencedUntil).toBe(until);
    expect(await ben.send(conv, 'before', { clientId })).toMatchObject({ duplicate: true });
    await ben.leave(conv);
    await ana.addMembers(conv, ['ben']);
    expect(await outcomeOf(ben.send(conv, 'x'))).toBe('MUTED');
    const { head } = await ana.conv(conv);
    await group(ana, 'muteMember', { conv, user: 'ben', until });
    expect(await ana.conv(conv)).toMatchObject({ head });
    await group(ana, 'unmuteMember', { conv, user: 'ben' });
    await group(ana, 'unmuteMember', { conv, user: 'ben' });
    expect(await ana.conv(conv)).toMatchObject({ head: head + 1 });
    await ben.send(conv, 'after');
  });

  test('[G2] a mute that lies in the past is refused; one that is over stops nothing', async () => {
    const past = new Date(Date.now() - 1_000).toISOString();
    expect(await outcomeOf(group(ana, 'muteMember', { conv, user: 'ben', until: past }))).toBe('BAD_USER_INPUT');
    await group(ana, 'muteMember', { conv, user: 'ben', until });
    await world.app.deps.store.pool.query(
      `UPDATE members SET silenced_until = clock_timestamp() WHERE conv_id = $1 AND user_id = 'ben'`,
      [conv],
    );
    await ben.send(conv, 'over');
  });

  test('[G2] [C4] muteAll spares owner and admins; the service’s ban spares nobody', async () => {
    await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
    await group(ben, 'muteAll', { conv, muted: true });
    await group(ben, 'muteAll', { conv, muted: true });
    expect((await last(ana, 1))[0]).toMatchObject({ seq: 4, contentType: 'GROUP_MUTED', content: null });
    expect(await outcomeOf(cho.send(conv, 'x'))).toBe('MUTED');
    for (const actor of [ana, ben]) await actor.send(conv, 'spared');
    await group(world.service, 'banConv', { conv, banned: true });
    for (const actor of [ana, ben, cho]) expect(await outcomeOf(actor.send(conv, 'x'))).toBe('FORBIDDEN');
    expect(await ana.markRead(conv, 5)).toMatchObject({ read: 5 });
    await group(world.service, 'banConv', { conv, banned: false });
    await group(ana, 'muteAll', { conv, muted: false });
    await cho.send(conv, 'again');
  });

  test('[G2] [M5] sends racing a mute: none that was accepted lies behind its answer', async () => {
    let muted = false;
    const late: unknown[] = [];
    const sendUntilMuted = async () => {
      for (;;) {
        const begunAfter = muted;
        const outcome = await outcomeOf(ben.send(conv, 'again'));
        if (outcome === 'MUTED') return;
        if (begunAfter) late.push(outcome);
      }
    };
    const senders = Array.from({ length: 6 }, sendUntilMuted);
    await group(ana, 'muteMember', { conv, user: 'ben' });
    muted = true;
    await Promise.all(senders);
    expect(late).toEqual([]);
  });
});

describe('pins', () => {
  test('[G3] [L5] [M1] a pin shows the message to who may see it; recalled, it has no content; at most 5', async () => {
    for (let n = 0; n < 7; n++) await ben.send(conv, `m${String(n)}`); // 3 to 9
    await group(ana, 'pinEvent', { conv, seq: 3 });
    await group(ana, 'pinEvent', { conv, seq: 3 });
    expect((await groupOf(ben, conv)).pins).toMatchObject([{ seq: 3, content: { text: 'm0' } }]);
    await ana.addMembers(conv, [await newUser()]);
    const late = await world.device(lateUser);
    expect((await groupOf(late, conv)).pins).toEqual([]);
    await ben.recall(conv, 3);
    expect((await groupOf(cho, conv)).pins).toMatchObject([{ seq: 3, recalled: true, content: null }]);
    expect(await outcomeOf(group(ana, 'pinEvent', { conv, seq: 1 }))).toBe('BAD_USER_INPUT');
    expect(await outcomeOf(group(ana, 'pinEvent', { conv, seq: 99 }))).toBe('BAD_USER_INPUT');
    const outcomes = await Promise.all([4, 5, 6, 7, 8].map((seq) => outcomeOf(group(ana, 'pinEvent', { conv, seq }))));
    expect(tally(outcomes)).toEqual({ ok: 4, BAD_USER_INPUT: 1 });
    await group(ana, 'unpinEvent', { conv, seq: 3 });
    expect((await groupOf(cho, conv)).pins).toHaveLength(4);
  });

  let lateUser = '';
  const newUser = async () => {
    lateUser = fresh('late-');
    await world.users(lateUser);
    return lateUser;
  };
});

describe('the end', () => {
  test('[C4] [M2] dissolving is the last event of everybody, at once; what was seen stays, nothing more is taken', async () => {
    await ben.send(conv, 'bye'); // 3
    const [his, hers] = [await listenToMessages(ben), await listenToMessages(cho)];
    const badges = (await cho.badge()).unread;
    const { conv: ended } = await group(ana, 'dissolveConv', { conv });
    expect(ended).toMatchObject({ head: 4, joined: false });
    for (const live of [his, hers]) expect(await live.next()).toMatchObject({ seq: 4, contentType: 'GROUP_DISSOLVE' });
    for (const actor of [ana, ben, cho]) {
      expect(await outcomeOf(actor.send(conv, 'x'))).toBe('NOT_MEMBER');
      expect((await actor.catchUp(conv)).at(-1)).toMatchObject({ seq: 4, contentType: 'GROUP_DISSOLVE' });
      expect((await actor.convs({ first: 1_000 })).nodes.map(({ id }) => id)).not.toContain(conv);
    }
    expect((await cho.badge()).unread).toBe(badges - 1);
    expect(await outcomeOf(ana.addMembers(conv, ['ben']))).toBe('NOT_MEMBER');
    expect(await outcomeOf(group(ana, 'dissolveConv', { conv }))).toBe('ok');
    expect(await cho.ask('query ($id: ID!) { conv(id: $id) { members { nodes { role } } } }', { id: conv })).toEqual({
      conv: { members: { nodes: [] } },
    });
  });

  test('[C4] the job writes it into every row, from several nodes at once, and changes nothing that is shown', async () => {
    const users = Array.from({ length: 150 }, () => fresh('many-'));
    await Promise.all(users.map((user) => world.users(user)));
    await ana.addMembers(conv, users);
    await ana.send(conv, 'hello all');
    await group(ana, 'dissolveConv', { conv });
    const shown = () => Promise.all([ana, ben, cho].map((actor) => actor.look(null)));
    const before = await shown();
    const { pool } = world.app.deps.store;
    const open = () => pool.query('SELECT 1 FROM members WHERE conv_id = $1 AND to_seq IS NULL', [conv]);
    expect((await open()).rowCount).toBe(153);
    await using one = createDissolving(world.app.deps, 3_600_000);
    await using other = createDissolving(world.app.deps, 3_600_000);
    await Promise.all([one.run(), other.run()]);
    expect((await open()).rowCount).toBe(0);
    const { rows } = await pool.query<{ head: string }>(
      'SELECT member_count, dissolved_seq, head FROM conversations WHERE id = $1',
      [conv],
    );
    expect(rows).toEqual([{ member_count: 0, dissolved_seq: rows[0]?.head, head: rows[0]?.head }]);
    const withoutMoment = (looks: Awaited<ReturnType<typeof shown>>) =>
      looks.map(({ convs, badge }) => ({ convs, badge: { ...badge, asOf: '' } }));
    expect(withoutMoment(await shown())).toEqual(withoutMoment(before));
  });

  test('[C4] a node runs the job by itself', async () => {
    await using own = await startWorld({ config: { dissolveEveryMs: 20 } });
    const owner = await own.device('ana');
    const { id } = (await owner.createConv({ members: ['ben'] })).conv;
    await group(owner, 'dissolveConv', { conv: id });
    const open = 'SELECT 1 FROM members WHERE conv_id = $1 AND to_seq IS NULL';
    await expect
      .poll(async () => (await own.app.deps.store.pool.query(open, [id])).rowCount, { timeout: 20_000 })
      .toBe(0);
  });

  test('[C4] [M5] sends racing the end: the dissolving event is the last of the log', async () => {
    const senders = [ana, ben, cho].map(async (actor) => {
      for (;;) if ((await outcomeOf(actor.send(conv, 'again'))) === 'NOT_MEMBER') return;
    });
    const { conv: ended } = await group(ana, 'dissolveConv', { conv });
    await Promise.all(senders);
    expect((await ben.catchUp(conv)).at(-1)).toMatchObject({ seq: ended.head, contentType: 'GROUP_DISSOLVE' });
    expect((await ana.conv(conv)).head).toBe(ended.head);
  });
});

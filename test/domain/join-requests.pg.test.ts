// Requests to join: who may ask, who is shown what at which moment, and that one answer wins.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { group, joinRequestsOf } from '../support/groups.js';
import { outcomeOf, refusalOf, tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ana: Actor, ben: Actor, cho: Actor, eve: Actor;
/** Of ana (owner), ben and cho (members); eve is outside. Head 2. */
let conv: string;
let eveId: string;

const waiting = async (actor: Actor) =>
  (await joinRequestsOf(actor, { conv, state: 'PENDING' })).map(({ user }) => user.id);

interface ChangeRow {
  readonly contentType: string;
  readonly change: { readonly joinRequest: { readonly state: string } | null };
}
async function listen(actor: Actor): Promise<() => Promise<ChangeRow>> {
  const live = await actor.app.subscribe(
    actor.credential,
    'subscription { hints { ... on ChangeHint { contentType change { ... on JoinRequestChange { joinRequest { state } } } } } }',
  );
  await live.next();
  const rowOf = (item: { readonly data?: unknown }) => (item.data as { hints: Partial<ChangeRow> }).hints;
  return async () => rowOf(await live.until((item) => rowOf(item).contentType !== undefined)) as ChangeRow;
}

beforeAll(async () => {
  world = await startWorld();
  [ana, ben, cho] = [await world.device('ana'), await world.device('ben'), await world.device('cho')];
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  conv = (await ana.createConv({ members: ['ben', 'cho'], joinPolicy: 'APPROVAL' })).conv.id;
  eveId = fresh('eve-');
  await world.users(eveId);
  eve = await world.device(eveId);
});

test('[G4] asking waits for owner or admin; approved, the applicant is in, and their first event says so', async () => {
  const { request } = await group(eve, 'requestJoin', { conv, text: 'let me in' });
  expect(request).toMatchObject({ conv, user: { id: eveId }, inviter: null, state: 'PENDING', text: 'let me in' });
  expect(await outcomeOf(eve.send(conv, 'x'))).toBe('NOT_MEMBER');
  expect([await waiting(ana), await waiting(eve), await waiting(ben)]).toEqual([[eveId], [eveId], []]);
  expect((await group(ana, 'approveJoin', { conv, user: eveId })).request).toMatchObject({ state: 'ACCEPTED' });
  expect(await eve.catchUp(conv)).toMatchObject([{ seq: 3, contentType: 'MEMBER_ENTER', sender: { id: 'ana' } }]);
  expect(await joinRequestsOf(eve)).toMatchObject([{ state: 'ACCEPTED' }]);
});

test('[G4] [G5] an ordinary member’s invitation is a request, shown to the inviter too; an admin’s adds at once', async () => {
  await ben.addMembers(conv, [eveId]);
  expect(await eve.ask('{ convs { nodes { id } } }')).toEqual({ convs: { nodes: [] } });
  for (const actor of [ana, ben, eve]) {
    expect(await joinRequestsOf(actor, { conv })).toMatchObject([{ state: 'PENDING', inviter: { id: 'ben' } }]);
  }
  await group(ana, 'setRole', { conv, user: 'cho', role: 'ADMIN' });
  await cho.addMembers(conv, [eveId]);
  expect(await eve.conv(conv)).toMatchObject({ joined: true });
  // whoever is in has nothing to ask for any longer
  expect(await joinRequestsOf(ben, { conv })).toMatchObject([{ state: 'ACCEPTED' }]);
  expect(await outcomeOf(ben.addMembers(conv, ['nobody']))).toBe('BAD_USER_INPUT');
});

test('[G4] asking again reopens a refused request; asking twice is asking once', async () => {
  await group(eve, 'requestJoin', { conv });
  await group(eve, 'requestJoin', { conv });
  await group(ana, 'refuseJoin', { conv, user: eveId });
  expect(await joinRequestsOf(eve)).toMatchObject([{ state: 'REFUSED' }]);
  const late = await refusalOf(group(ana, 'approveJoin', { conv, user: eveId }));
  expect(late).toMatchObject({ code: 'CONFLICT', extensions: { outcome: 'REFUSED' } });
  expect((await group(eve, 'requestJoin', { conv, text: 'please' })).request).toMatchObject({ state: 'PENDING' });
  expect(await waiting(ana)).toEqual([eveId]);
});

test('[G4] of ten parallel answers one wins, the others get CONFLICT with the outcome; the applicant is in once or not', async () => {
  await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
  await group(eve, 'requestJoin', { conv });
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      outcomeOf(group(n % 2 ? ana : ben, n % 3 ? 'approveJoin' : 'refuseJoin', { conv, user: eveId })),
    ),
  );
  expect(tally(answers)).toEqual({ ok: 1, CONFLICT: 9 });
  const [request] = await joinRequestsOf(eve);
  const entered = (await ana.catchUp(conv)).filter(({ contentType }) => contentType === 'MEMBER_ENTER');
  expect(entered).toHaveLength(request?.state === 'ACCEPTED' ? 1 : 0);
});

test('[G5] [C1] who becomes an admin is shown what waits; who is one no longer, by whichever way, is shown nothing of it', async () => {
  await group(eve, 'requestJoin', { conv });
  const next = await listen(ben);
  await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
  expect(await next()).toEqual({
    contentType: 'GROUP_REQUEST_RECEIVED',
    change: { joinRequest: { state: 'PENDING' } },
  });
  expect(await waiting(ben)).toEqual([eveId]);
  await group(ana, 'setRole', { conv, user: 'ben', role: 'MEMBER' });
  expect(await next()).toEqual({ contentType: 'GROUP_REQUEST_WITHDRAWN', change: { joinRequest: null } });
  expect(await waiting(ben)).toEqual([]);
  await group(ana, 'setRole', { conv, user: 'ben', role: 'ADMIN' });
  expect(await waiting(ben)).toEqual([eveId]);
  await ana.removeMember(conv, 'ben');
  expect(await joinRequestsOf(ben, { conv })).toEqual([]);
  await group(ana, 'transferConv', { conv, user: 'cho' });
  expect([await waiting(ana), await waiting(cho)]).toEqual([[], [eveId]]);
});

test('[H9] every device of those concerned is told of the request and of the answer, and nobody else', async () => {
  const [hers, his, applicants] = [await listen(ana), await listen(ben), await listen(eve)];
  await group(eve, 'requestJoin', { conv });
  for (const next of [hers, applicants]) {
    expect(await next()).toEqual({
      contentType: 'GROUP_REQUEST_RECEIVED',
      change: { joinRequest: { state: 'PENDING' } },
    });
  }
  await group(ana, 'refuseJoin', { conv, user: eveId });
  for (const next of [hers, applicants]) {
    expect(await next()).toEqual({
      contentType: 'GROUP_REQUEST_REJECTED',
      change: { joinRequest: { state: 'REFUSED' } },
    });
  }
  // the first thing that ben hears is his own
  await ben.addMembers(conv, [eveId]);
  expect(await his()).toEqual({ contentType: 'GROUP_REQUEST_RECEIVED', change: { joinRequest: { state: 'PENDING' } } });
});

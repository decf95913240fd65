// Asking to be a contact, and the answers (K2–K4).
import { type ContactRequest, type Page, type RequestState, type Viewer } from '../model.js';
import { requirePerson } from './access.js';
import type { ContentTypeName } from './content-types.js';
import { setBlocked } from './contacts.js';
import type { Deps } from './deps.js';
import { openDirect, pairOf } from './direct.js';
import { badInput, blocked, conflict } from './errors.js';
import { requireFirst, requireShort, requireUserId, toPage } from './input.js';
import { announce } from './scene.js';
import { between, renewed, tellOfTie, type ContactAnswer, type RequestKey, type Scene } from './ties.js';

/** From any state: reopens the request, accepts the one that waits, or adds silently whom the other still holds (K2, K5). */
export async function requestContact(
  deps: Deps,
  viewer: Viewer,
  input: { readonly user: string; readonly text?: string | null | undefined },
): Promise<ContactAnswer> {
  const text = input.text == null ? null : requireShort(input.text, 'text', deps.limits.maxRequestText);
  await deps.rates.spend('send', requirePerson(viewer));
  return between(deps, viewer, input.user, async (scene) => {
    const { me, peer, ties, tx } = scene;
    if (ties.theirs?.blocked === true) throw blocked();
    if (ties.mine?.active === true && ties.theirs?.active === true) return null;
    if (ties.received?.state === 'PENDING') return befriend(deps, scene);
    if (ties.theirs?.active === true) {
      tellOfTie(scene, 'FRIEND_ADD', await tx.contacts.put(me, renewed(ties.mine, peer)));
      return null;
    }
    const request = { from: me, to: peer };
    if (ties.sent?.state === 'PENDING' && ties.sent.text === text) return request;
    await setBlocked(scene, false); // who asks a user does not block them any longer
    const drawn = await tx.contacts.putRequest(me, peer, 'PENDING', text);
    tellOfTie(scene, 'FRIEND_REQUEST_RECEIVED', drawn, request);
    return request;
  });
}

export const acceptContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, async (scene) => {
    requirePending(scene.ties.received);
    if (scene.ties.theirs?.blocked === true) throw blocked();
    return befriend(deps, scene);
  });

export const refuseContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, (scene) => close(scene, scene.ties.received, 'REFUSED', 'FRIEND_REQUEST_REJECTED'));

export const withdrawContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, (scene) => close(scene, scene.ties.sent, 'WITHDRAWN', 'FRIEND_REQUEST_WITHDRAWN'));

/** The waiting request of the peer is accepted: both directions, and one event in their direct conversation (K4). */
async function befriend(deps: Deps, scene: Scene): Promise<RequestKey> {
  const { tx, tell, viewer, me, peer, ties } = scene;
  const request = { from: peer, to: me };
  const { conv } = await openDirect(tx, tell, viewer, [me, peer], { contactsOnly: false });
  tellOfTie(
    scene,
    'FRIEND_REQUEST_APPROVED',
    await tx.contacts.putRequest(peer, me, 'ACCEPTED', ties.received?.text ?? null),
    request,
  );
  tellOfTie(scene, 'FRIEND_ADD', await tx.contacts.put(me, renewed(ties.mine, peer)));
  tellOfTie(scene, 'FRIEND_ADD', await tx.contacts.put(peer, renewed(ties.theirs, me)));
  const event = { kind: 'NOTICE', contentType: 'FRIEND_ADD', content: { users: pairOf(me, peer) } } as const;
  await announce(deps, viewer, scene, { id: conv, type: 'DIRECT' }, { event });
  return request;
}

/** The first who answers wins; the others learn what it came to (K3). */
function requirePending(request: ContactRequest | null): ContactRequest {
  if (request === null) throw badInput('there is no such request');
  if (request.state !== 'PENDING') throw conflict(request.state);
  return request;
}

async function close(
  scene: Scene,
  asked: ContactRequest | null,
  state: RequestState,
  contentType: ContentTypeName,
): Promise<RequestKey> {
  const { from, to, text } = requirePending(asked);
  tellOfTie(scene, contentType, await scene.tx.contacts.putRequest(from, to, state, text), { from, to });
  return { from, to };
}

export interface ContactRequestsInput {
  readonly sent?: boolean | null | undefined;
  readonly state?: RequestState | null | undefined;
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** By the other user's id. */
export async function contactRequests(
  deps: Deps,
  viewer: Viewer,
  input: ContactRequestsInput,
): Promise<Page<ContactRequest>> {
  const { user } = requirePerson(viewer);
  const first = requireFirst(input.first, 50, deps.limits.maxPage);
  const after = input.after == null ? null : requireUserId(input.after, 'after');
  const query = { sent: input.sent ?? false, state: input.state ?? null, after, first };
  const found = await deps.store.contacts.requestPage(user, query);
  return toPage(found, first, after);
}

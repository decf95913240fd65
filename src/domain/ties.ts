// What is between two users, and who is told when it changes. Decided under both of their row locks, after the lock of their
// direct conversation, so that crossed requests and parallel answers have one outcome (K1).
import { deviceOf, type Contact, type ContactRequest, type PersonViewer, type UserId, type Viewer } from '../model.js';
import type { Drawn, Ties } from '../store/contacts.js';
import type { Tx } from '../store/store.js';
import { requireCurrent, requirePerson } from './access.js';
import { commit, type Tell } from './commit.js';
import type { ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';
import { pairOf } from './direct.js';
import { badInput } from './errors.js';
import { requireKnown, requireUserId } from './input.js';

export type RequestKey = Pick<ContactRequest, 'from' | 'to'>;

/** Between whom something was changed, and which request it was about. */
export interface ContactAnswer {
  readonly user: UserId;
  readonly peer: UserId;
  readonly request: RequestKey | null;
}

/** Two users, locked. */
export interface Scene {
  readonly tx: Tx;
  readonly tell: Tell;
  readonly viewer: PersonViewer;
  readonly me: UserId;
  readonly peer: UserId;
  readonly ties: Ties;
}

export async function between(
  deps: Deps,
  viewer: Viewer,
  user: string,
  change: (scene: Scene) => Promise<RequestKey | null>,
): Promise<ContactAnswer> {
  const person = requirePerson(viewer);
  const [me, peer] = [person.user, requireUserId(user)];
  if (me === peer) throw badInput('user is the viewer');
  const request = await commit(deps, async (tx, tell) => {
    // conversations before users (M5)
    const direct = await tx.conversations.findDirect(pairOf(me, peer));
    if (direct !== null) await tx.clock.lock(direct);
    const known = await tx.clock.lockUsers([me, peer]);
    await deps.failpoint('after lock');
    await requireCurrent(tx, viewer);
    requireKnown([peer], known);
    return change({ tx, tell, viewer: person, me, peer, ties: await tx.contacts.ties(me, peer) });
  });
  return { user: me, peer, request };
}

/** Being added again begins anew: no remark, no mute, no pin, no block (K5). */
export const renewed = (kept: Contact | null, peer: UserId): Contact =>
  kept?.active === true
    ? kept
    : { peer, active: true, since: new Date(), remark: null, muted: false, pinned: false, blocked: false };

const quiet = { conversationType: 'NONE', kind: 'change' } as const;
const originOf = (viewer: PersonViewer, user: UserId) =>
  viewer.user === user ? (deviceOf(viewer)?.device ?? null) : null;

/** Tells each whose row changed, on all their devices; request: the row was a request. */
export function tellOfTie(
  { tell, viewer, me, peer }: Scene,
  contentType: ContentTypeName,
  drawn: Drawn,
  request: RequestKey | null = null,
): void {
  for (const [user, change] of drawn) {
    const about = request
      ? ({ type: 'contactRequest', ...request } as const)
      : ({ type: 'contact', peer: user === me ? peer : me } as const);
    tell([user], { ...quiet, contentType, about, change, originDevice: originOf(viewer, user) });
  }
}

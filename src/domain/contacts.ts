// The viewer's contacts: whom they hold, under which remark, whom they block (K5, K6).
import type { Contact, Page, Viewer } from '../model.js';
import { requirePerson } from './access.js';
import type { Deps } from './deps.js';
import { badInput } from './errors.js';
import { requireFirst, requireShort, requireUserId, toPage } from './input.js';
import { between, renewed, tellOfTie, type ContactAnswer, type Scene } from './ties.js';

/** One-sided: the other is not told (K5). */
export const deleteContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, async (scene) => {
    const { me, ties, tx } = scene;
    if (ties.mine?.active === true) {
      tellOfTie(scene, 'FRIEND_DELETE', await tx.contacts.put(me, { ...ties.mine, active: false }));
    }
    return null;
  });

export const blockContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, (scene) => setBlocked(scene, true));

export const unblockContact = (deps: Deps, viewer: Viewer, input: { readonly user: string }): Promise<ContactAnswer> =>
  between(deps, viewer, input.user, (scene) => setBlocked(scene, false));

/** Under the locks; whoever is blocked need not be a contact. */
export async function setBlocked(scene: Scene, value: boolean): Promise<null> {
  const { tx, me, peer, ties } = scene;
  const mine = ties.mine ?? { ...renewed(null, peer), active: false };
  if (mine.blocked !== value) {
    const drawn = await tx.contacts.put(me, { ...mine, blocked: value });
    tellOfTie(scene, value ? 'FRIEND_BLOCK' : 'FRIEND_UNBLOCK', drawn);
  }
  return null;
}

export interface ContactInput {
  readonly user: string;
  readonly remark?: string | null | undefined;
  readonly muted?: boolean | null | undefined;
  readonly pinned?: boolean | null | undefined;
}

/** What is absent stays; a null remark is cleared. */
export async function updateContact(deps: Deps, viewer: Viewer, input: ContactInput): Promise<ContactAnswer> {
  const remark = input.remark == null ? input.remark : requireShort(input.remark, 'remark', deps.limits.maxRemark);
  return between(deps, viewer, input.user, async (scene) => {
    const { mine } = scene.ties;
    if (mine?.active !== true) throw badInput('user is no contact of the viewer');
    const next = {
      ...mine,
      remark: remark === undefined ? mine.remark : remark,
      muted: input.muted ?? mine.muted,
      pinned: input.pinned ?? mine.pinned,
    };
    if (next.remark !== mine.remark || next.muted !== mine.muted || next.pinned !== mine.pinned) {
      tellOfTie(scene, 'FRIEND_UPDATE', await scene.tx.contacts.put(scene.me, next));
    }
    return null;
  });
}

export interface ContactsInput {
  readonly blocked?: boolean | null | undefined;
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** By the other user's id. */
export async function contacts(deps: Deps, viewer: Viewer, input: ContactsInput): Promise<Page<Contact>> {
  const { user } = requirePerson(viewer);
  const first = requireFirst(input.first, 50, deps.limits.maxPage);
  const after = input.after == null ? null : requireUserId(input.after, 'after');
  const found = await deps.store.contacts.page(user, input.blocked === true ? 'BLOCKED' : 'ACTIVE', after, first);
  return toPage(found, first, after);
}

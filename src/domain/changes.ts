// The changes feed: what changed in the viewer's own state since a cursor, page by page, each row as it is now (C1–C3).
import type { ChangeAbout, Contact, ContactRequest, Conv, JoinRequest, UserId, Viewer } from '../model.js';
import type { Look } from '../store/conversations.js';
import type { Tx } from '../store/store.js';
import { requirePerson, toLook } from './access.js';
import type { Deps } from './deps.js';
import { badInput } from './errors.js';
import { fromOpaque, requireFirst, toOpaque } from './input.js';

/**
 * One row of the user's own state. Nothing is removed (C1): a conversation that was left has `joined` false, a contact that was
 * deleted `active` false, a request that the viewer handles no longer `shown` false.
 */
export type ChangedRow =
  | { readonly kind: 'conv'; readonly conv: Conv }
  | { readonly kind: 'contact'; readonly contact: Contact }
  | { readonly kind: 'contactRequest'; readonly contactRequest: ContactRequest }
  | { readonly kind: 'joinRequest'; readonly joinRequest: JoinRequest };
/** With the number of its last change: no two rows of a user have the same. */
export type Change = ChangedRow & { readonly number: number };

/** A kind of rows that bear change numbers: at most `limit` of them above `after`, ascending. */
type Source = (tx: Tx, look: Look, after: number, limit: number) => Promise<Change[]>;

const sources: readonly Source[] = [
  async (tx, look, after, limit) =>
    (await tx.changes.convs(look, after, limit)).map(({ change, ...conv }) => ({ kind: 'conv', number: change, conv })),
  async (tx, { user }, after, limit) =>
    (await tx.changes.contacts(user, after, limit)).map(({ change, ...contact }) => ({
      kind: 'contact',
      number: change,
      contact,
    })),
  async (tx, { user }, after, limit) =>
    (await tx.changes.contactRequests(user, after, limit)).map(({ change, ...contactRequest }) => ({
      kind: 'contactRequest',
      number: change,
      contactRequest,
    })),
  async (tx, { user }, after, limit) =>
    (await tx.changes.joinRequests(user, after, limit)).map(({ change, ...joinRequest }) => ({
      kind: 'joinRequest',
      number: change,
      joinRequest,
    })),
];

/** The row that a hint speaks of, as it is now. */
export async function changedRow({ loads }: Deps, user: UserId, about: ChangeAbout): Promise<ChangedRow | null> {
  switch (about.type) {
    case 'contact': {
      const contact = await loads.contact({ user, peer: about.peer });
      return contact && { kind: 'contact', contact };
    }
    case 'contactRequest': {
      const contactRequest = await loads.contactRequest(about);
      return contactRequest && { kind: 'contactRequest', contactRequest };
    }
    case 'joinRequest': {
      const joinRequest = await loads.joinRequest({ viewer: user, conv: about.conv, user: about.user });
      return joinRequest && { kind: 'joinRequest', joinRequest };
    }
  }
}

export interface ChangePage {
  readonly items: readonly Change[];
  readonly cursor: string;
  readonly hasMore: boolean;
  readonly reset: boolean;
}

export async function changes(
  deps: Deps,
  viewer: Viewer,
  input: { readonly after?: string | null | undefined; readonly first?: number | null | undefined },
): Promise<ChangePage> {
  const person = requirePerson(viewer);
  const first = requireFirst(input.first, 50, deps.limits.maxPage);
  const place = input.after == null ? null : requirePlace(input.after);
  return deps.store.read(async (tx) => {
    const { generation, last } = await tx.changes.standing(person.user);
    // of another life of the database, or of a moment that this one has not had: what the client holds is not ours (C3)
    const reset = place !== null && (place.generation !== generation || place.number > last);
    const after = reset ? 0 : (place?.number ?? 0);
    const found: Change[] = [];
    if (after < last) for (const source of sources) found.push(...(await source(tx, toLook(person), after, first + 1)));
    const items = found.toSorted((a, b) => a.number - b.number).slice(0, first);
    const hasMore = found.length > first;
    // Nothing commits late below a number that was seen: they are drawn and committed under the user's row lock (C2).
    const upTo = hasMore ? (items.at(-1)?.number ?? after) : last;
    return { items, hasMore, reset, cursor: toOpaque(`${generation} ${String(upTo)}`) };
  });
}

/** How far a client has come, in one life of the database. */
interface Place {
  readonly generation: string;
  readonly number: number;
}

/** A generation that we cannot read is one of another database, a number beyond all of ours one of the future. */
function requirePlace(cursor: string): Place {
  const [, generation, number] = /^(\S{1,64}) (\d{1,20})$/u.exec(fromOpaque(cursor)) ?? [];
  if (generation === undefined || number === undefined) throw badInput('after is no cursor of changes');
  return { generation, number: Number(number) };
}

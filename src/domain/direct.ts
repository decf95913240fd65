// The one conversation of a pair: whoever opens it first, for ever (M6).
import { v7 as uuidv7 } from 'uuid';
import { deviceOf, type ConvId, type UserId, type Viewer } from '../model.js';
import type { Tx } from '../store/store.js';
import type { Tell } from './commit.js';
import { forbidden } from './errors.js';

/** The order that the database has for ids (COLLATE "C"): UTF-16's differs beyond the basic plane. */
export const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

export function pairOf(a: UserId, b: UserId): readonly [UserId, UserId] {
  return byBytes(a, b) < 0 ? [a, b] : [b, a];
}

/**
 * Finds it or makes it: empty, both periods from 1. Both users are locked. A race for the pair is decided by its unique index.
 * The first of the two is the one who opens it.
 */
export async function openDirect(
  tx: Tx,
  tell: Tell,
  viewer: Viewer,
  [opener, other]: readonly [UserId, UserId],
  { contactsOnly }: { readonly contactsOnly: boolean },
): Promise<{ readonly conv: ConvId; readonly duplicate: boolean }> {
  const pair = pairOf(opener, other);
  const found = await tx.conversations.findDirect(pair);
  if (found !== null) return { conv: found, duplicate: true };
  if (contactsOnly) await requireContacts(tx, pair);
  const id = uuidv7() as ConvId;
  const rest = { title: null, joinPolicy: 'INVITE', historyVisible: false } as const;
  await tx.conversations.insert({ id, type: 'DIRECT', direct: pair, ...rest });
  const changes = await tx.clock.touch(pair);
  await tx.memberships.open(id, pair, 'MEMBER', 1);
  const originDevice = deviceOf(viewer)?.device ?? null;
  const hint = { kind: 'conv', conv: id, conversationType: 'DIRECT', contentType: 'DIRECT_CREATE' } as const;
  for (const [user, change] of changes) {
    tell([user], { ...hint, originDevice: user === opener ? originDevice : null, change });
  }
  return { conv: id, duplicate: false };
}

/** CONTACTS_ONLY: each must hold the other. */
async function requireContacts(tx: Tx, [low, high]: readonly [UserId, UserId]): Promise<void> {
  const { mine, theirs } = await tx.contacts.ties(low, high);
  if (mine?.active !== true || theirs?.active !== true) throw forbidden('only contacts may write to each other here');
}

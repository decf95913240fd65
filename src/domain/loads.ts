// Reads that are asked for one at a time and done together: all that one tick asks for is one statement (H1), of one
// snapshot. Nothing is remembered between ticks, so an answer is never older than its question (R5).
import DataLoader from 'dataloader';
import type { Contact, ContactRequest, JoinRequest, Conv, ConvId, LogEvent, Seq, User, UserId } from '../model.js';
import type { Look } from '../store/conversations.js';
import type { Store } from '../store/store.js';

export interface Loads {
  /** null where the user never was a member */
  conv(key: Look & { readonly conv: ConvId }): Promise<Conv | null>;
  /** null where the user cannot see it */
  event(key: { readonly user: UserId; readonly conv: ConvId; readonly seq: Seq }): Promise<LogEvent | null>;
  user(id: UserId): Promise<User | null>;
  /** null where the user never held the peer */
  contact(key: { readonly user: UserId; readonly peer: UserId }): Promise<Contact | null>;
  contactRequest(key: { readonly from: UserId; readonly to: UserId }): Promise<ContactRequest | null>;
  /** null where the viewer was never shown it */
  joinRequest(key: {
    readonly viewer: UserId;
    readonly conv: ConvId;
    readonly user: UserId;
  }): Promise<JoinRequest | null>;
  /** the pinned events that the user may see, newest pin first */
  pins(key: { readonly user: UserId; readonly conv: ConvId }): Promise<readonly LogEvent[]>;
}

function batched<K, V>(load: (keys: readonly K[]) => Promise<readonly V[]>): (key: K) => Promise<V> {
  const loader = new DataLoader<K, V>(load, { cache: false, maxBatchSize: 1_000 });
  return (key) => loader.load(key);
}

export const createLoads = (store: Store): Loads => ({
  conv: batched((keys) => store.conversations.seen(keys)),
  event: batched((keys) => store.messages.seen(keys)),
  user: batched(async (ids) => {
    const found = await store.users.byIds([...new Set(ids)]);
    return ids.map((id) => found.get(id) ?? null);
  }),
  contact: batched((keys) => store.contacts.of(keys)),
  contactRequest: batched((keys) => store.contacts.requestsOf(keys)),
  joinRequest: batched((keys) => store.joinRequests.seen(keys)),
  pins: batched((keys) => store.groups.pinsSeen(keys)),
});

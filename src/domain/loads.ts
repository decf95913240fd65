// Reads that are asked for one at a time and done together: all that one tick asks for is one statement (H1), of one
// snapshot. Nothing is remembered between ticks, so an answer is never older than its question (R5).
import DataLoader from 'dataloader';
import type { Conv, ConvId, LogEvent, Seq, User, UserId } from '../model.js';
import type { Look } from '../store/conversations.js';
import type { Store } from '../store/store.js';

export interface Loads {
  /** null where the user never was a member */
  conv(key: Look & { readonly conv: ConvId }): Promise<Conv | null>;
  /** null where the user cannot see it */
  event(key: { readonly user: UserId; readonly conv: ConvId; readonly seq: Seq }): Promise<LogEvent | null>;
  user(id: UserId): Promise<User | null>;
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
});

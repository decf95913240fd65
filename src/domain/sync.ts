// Catching up: many conversations, one budget, one snapshot (S1–S3).
import type { Conv, ConvId, LogEvent, Seq, UserId, Viewer } from '../model.js';
import type { Tx } from '../store/store.js';
import { requirePerson, toLook } from './access.js';
import type { Deps } from './deps.js';
import { badInput, notMember, overLimit, toItemError, type ItemError } from './errors.js';
import { requireFirst, toConvId } from './input.js';

export interface SyncFrom {
  readonly conv: string;
  readonly after: Seq;
  readonly epoch?: number | null | undefined;
}
export type ResetReason = 'AHEAD' | 'EPOCH' | 'TRIMMED';
export interface SyncItem {
  /** null: this item failed, see error */
  readonly conv: Conv | null;
  readonly events: readonly LogEvent[];
  /** resume here: it passes what is invisible to the viewer */
  readonly through: Seq;
  readonly head: Seq;
  readonly hasMore: boolean;
  readonly reset: { readonly reason: ResetReason; readonly start: Seq } | null;
  readonly error: ItemError | null;
}
export interface SyncAnswer {
  readonly items: readonly SyncItem[];
  readonly complete: boolean;
}

/** A conversation to be paged, and what has been found of it so far. */
interface Part {
  readonly ord: number;
  readonly conv: Conv;
  readonly events: LogEvent[];
  after: Seq;
  hasMore: boolean;
}

const defaultBudget = 500;

export async function sync(
  deps: Deps,
  viewer: Viewer,
  input: { readonly from: readonly SyncFrom[]; readonly budget?: number | null | undefined },
): Promise<SyncAnswer> {
  const person = requirePerson(viewer);
  const { maxSyncConvs, maxSyncEvents } = deps.limits;
  if (input.from.length > maxSyncConvs) throw overLimit('from', maxSyncConvs, 'conversations');
  for (const { epoch } of input.from) if (epoch != null && epoch < 1) throw badInput('epoch is at least 1');
  const budget = requireFirst(input.budget, defaultBudget, maxSyncEvents, 'budget');
  if (input.from.length === 0) return { items: [], complete: true };

  return deps.store.read(async (tx) => {
    const asked = input.from.map((from) => ({ ...from, id: toConvId(from.conv) }));
    const convs = await tx.conversations.seen(asked.map(({ id }) => ({ ...toLook(person), conv: id })));
    const trimmed = await findTrimmed(tx, person.user, asked, convs);
    const items = asked.map((from, ord) => begin(from, convs[ord] ?? null, trimmed[ord] ?? false));
    const parts = items.flatMap((item, ord): Part[] =>
      item.conv === null || item.reset !== null || item.through >= item.head
        ? []
        : [{ ord, conv: item.conv, events: [], after: item.through, hasMore: true }],
    );
    await fill(tx, person.user, parts, budget);
    for (const part of parts) {
      const item = items[part.ord];
      if (item)
        items[part.ord] = {
          ...item,
          events: part.events,
          hasMore: part.hasMore,
          through: part.hasMore ? part.after : item.head,
        };
    }
    return { items, complete: !items.some(({ hasMore }) => hasMore) };
  });
}

async function findTrimmed(
  tx: Tx,
  user: UserId,
  asked: readonly (SyncFrom & { readonly id: ConvId })[],
  convs: readonly (Conv | null)[],
): Promise<boolean[]> {
  const behind = asked.map(({ after }, ord) => after > 0 && after < (convs[ord]?.minSeq ?? 1) - 1);
  if (!behind.includes(true)) return behind;
  const lost = await tx.sync.trimmed(
    user,
    asked.map(({ id, after }) => ({ conv: id, after })),
  );
  return behind.map((isBehind, ord) => isBehind && (lost[ord] ?? false));
}

function begin(from: SyncFrom, conv: Conv | null, isTrimmed: boolean): SyncItem {
  if (conv === null)
    return {
      conv,
      events: [],
      through: from.after,
      head: 0,
      hasMore: false,
      reset: null,
      error: toItemError(notMember()),
    };
  const { head, minSeq, epoch } = conv;
  const none = { conv, events: [], head, error: null };
  const reset = (reason: ResetReason, start: Seq): SyncItem => ({
    ...none,
    through: start,
    hasMore: true,
    reset: { reason, start },
  });
  // "I hold nothing" has nothing to drop
  if (from.after > 0) {
    if (from.epoch != null && from.epoch !== epoch) return reset('EPOCH', 0);
    if (from.after > head) return reset('AHEAD', 0);
    if (isTrimmed) return reset('TRIMMED', Math.min(minSeq - 1, head));
  }
  return { ...none, through: from.after, hasMore: false, reset: null };
}

/** Shares the budget out evenly among those that still have something, in rounds, until it is used up (S2). */
async function fill(tx: Tx, user: UserId, parts: readonly Part[], budget: number): Promise<void> {
  let left = budget;
  let open = [...parts];
  while (open.length > 0 && left > 0) {
    const share = Math.max(1, Math.floor(left / open.length));
    const turn = open.slice(0, Math.min(open.length, left));
    const pages = await tx.sync.parts(
      user,
      turn.map(({ conv, after }) => ({ conv: conv.id, after, limit: share })),
    );
    turn.forEach((part, index) => {
      const page = pages[index] ?? [];
      const events = page.slice(0, share);
      part.events.push(...events);
      part.hasMore = page.length > share;
      part.after = events.at(-1)?.seq ?? part.after;
      left -= events.length;
    });
    open = open.filter(({ hasMore }) => hasMore);
  }
}

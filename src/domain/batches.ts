// Several conversations in one request: one statement, a result or an error per item in the order asked. One bad item fails
// alone; a credential that no longer holds refuses the whole (I3, I5).
import type { ConvId, PersonViewer, Seq, Viewer } from '../model.js';
import { toMoment } from '../store/as-of.js';
import type { AdvancedConv, Batch, Position } from '../store/batches.js';
import { requireDevice, requirePerson } from './access.js';
import { commit, type Tell } from './commit.js';
import type { Deps } from './deps.js';
import { badInput, overLimit, refusal, toItemError, type ItemError } from './errors.js';
import { toConvId } from './input.js';
import { tellOfRead } from './read-state.js';

export interface AskedPosition {
  readonly conv: string;
  readonly seq: Seq;
}
/** conv null: this item failed, see error; head is known for CURSOR_AHEAD too. */
export interface ReadItem {
  readonly conv: ConvId | null;
  readonly read: Seq | null;
  readonly unread: number | null;
  readonly head: Seq | null;
  readonly error: ItemError | null;
}
export interface ReadBatch {
  readonly items: readonly ReadItem[];
}
export interface ReadAllPage extends ReadBatch {
  readonly complete: boolean;
}
export interface DeliveryItem {
  readonly conv: ConvId | null;
  readonly delivered: Seq | null;
  readonly head: Seq | null;
  readonly error: ItemError | null;
}
export interface DeliveryBatch {
  readonly items: readonly DeliveryItem[];
}

export async function markReadMany(
  deps: Deps,
  viewer: Viewer,
  input: { readonly items: readonly AskedPosition[] },
): Promise<ReadBatch> {
  const person = requirePerson(viewer);
  const positions = requirePositions(deps, input.items);
  await deps.rates.spend('read', person, positions.length);
  return commit(deps, async (tx, tell) => {
    const items = requireAll(await tx.batches.advance(person, positions));
    return { items: items.map((item) => toReadItem(tell, person, item)) };
  });
}

/** Reads what the holder of the token had been shown, and nothing newer: a chunk at a time, until `complete`. */
export async function markAllRead(deps: Deps, viewer: Viewer, input: { readonly asOf: string }): Promise<ReadAllPage> {
  const person = requirePerson(viewer);
  const moment = toMoment(input.asOf);
  if (moment === null) throw badInput('asOf is no token of badge or convs');
  await deps.rates.spend('read', person, deps.limits.maxBatch);
  return commit(deps, async (tx, tell) => {
    const chunk = await tx.batches.advanceAll(person, moment, deps.limits.maxBatch);
    const items = requireAll(chunk);
    return { items: items.map((item) => toReadItem(tell, person, item)), complete: chunk.complete };
  });
}

export async function ackMany(
  deps: Deps,
  viewer: Viewer,
  input: { readonly items: readonly AskedPosition[] },
): Promise<DeliveryBatch> {
  const device = requireDevice(viewer);
  const positions = requirePositions(deps, input.items);
  await deps.rates.spend('ack', device, positions.length);
  return commit(deps, async (tx) => {
    const items = requireAll(await tx.batches.ack(device, positions));
    return {
      items: items.map(({ status, delivered, head }, at) =>
        status === 'ok'
          ? { conv: positions[at]?.conv ?? null, delivered, head, error: null }
          : { conv: null, delivered: null, head, error: toItemError(refusal(status, { head })) },
      ),
    };
  });
}

function requirePositions({ limits: { maxBatch } }: Deps, items: readonly AskedPosition[]): Position[] {
  if (items.length > maxBatch) throw overLimit('items', maxBatch, 'conversations');
  return items.map(({ conv, seq }) => ({ conv: toConvId(conv), seq }));
}

function requireAll<T>({ refused, items }: Batch<T>): readonly T[] {
  if (refused === 'bad_token') throw badInput('asOf is of another life of the database: ask badge or convs again');
  if (items === null) throw refusal(refused);
  return items;
}

function toReadItem(tell: Tell, viewer: PersonViewer, state: AdvancedConv): ReadItem {
  const { conv, status, read, unread, head } = state;
  if (status !== 'ok')
    return { conv: null, read: null, unread: null, head, error: toItemError(refusal(status, { head })) };
  tellOfRead(tell, viewer, conv, state);
  return { conv, read, unread, head, error: null };
}

// How far the user has read: one position for all of the user's devices, which only rises (R1–R4).
import { deviceOf, type ConvId, type Seq, type Viewer } from '../model.js';
import type { Advance } from '../store/read-state.js';
import type { Tx } from '../store/store.js';
import { requirePerson } from './access.js';
import { commit, type Tell } from './commit.js';
import type { Deps } from './deps.js';
import { refusal } from './errors.js';
import { requireConvId } from './input.js';
import type { PersonViewer } from '../model.js';

export interface ReadAnswer {
  readonly conv: ConvId;
  readonly read: Seq;
  readonly unread: number;
  readonly head: Seq;
}

export async function markRead(deps: Deps, viewer: Viewer, input: { conv: string; seq: Seq }): Promise<ReadAnswer> {
  const person = requirePerson(viewer);
  await deps.rates.spend('read', person);
  const conv = requireConvId(input.conv);
  return commit(deps, async (tx, tell) => {
    const { read, unread, head } = await advance(tx, tell, person, conv, input.seq);
    return { conv, read, unread, head };
  });
}

/** Inside a transaction: merges the position and, only when it moved, tells all devices of the user (R2, R4). */
export async function advance(tx: Tx, tell: Tell, viewer: PersonViewer, conv: ConvId, seq: Seq): Promise<Advance> {
  const state = await tx.readState.advance(viewer, conv, seq);
  if (state.status !== 'ok') throw refusal(state.status, state);
  tellOfRead(tell, viewer, conv, state);
  return state;
}

export function tellOfRead(tell: Tell, viewer: PersonViewer, conv: ConvId, state: Advance): void {
  if (!state.moved) return;
  const { read, unread, head, conversationType, change } = state;
  const originDevice = deviceOf(viewer)?.device ?? null;
  tell([viewer.user], { kind: 'read', conv, conversationType, read, unread, head, originDevice, change });
}

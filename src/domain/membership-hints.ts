// Who hears of a change of membership, and how the conversation's hints travel from it on (H7).
import { deviceOf, type ConvId, type ConvType, type UserId, type Viewer } from '../model.js';
import type { Tx } from '../store/store.js';
import type { Tell } from './commit.js';
import type { ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';

interface MembershipChange {
  readonly tx: Tx;
  readonly tell: Tell;
  readonly viewer: Viewer;
  readonly conv: { readonly id: ConvId; readonly type: ConvType };
  readonly seq: number;
  readonly contentType: ContentTypeName;
  /** the subjects, whose own state has changed, each with the number of that change */
  readonly changes: ReadonlyMap<UserId, number>;
}

/**
 * To be called when the periods have been opened or closed. The event is news to everybody; to its subjects it is a change
 * of their own state as well (C2), told to each by name: one who has gone, or who is only coming, is no member to ask for.
 */
export async function tellOfMembership({ delivery }: Deps, change: MembershipChange): Promise<void> {
  const { tx, tell, viewer, seq, contentType, changes } = change;
  const { id: conv, type: conversationType } = change.conv;
  const { switched, users, channel } = await tx.memberships.settle(conv, delivery);
  const about = { kind: 'message', conv, conversationType, head: seq, seq, contentType } as const;
  const originDevice = deviceOf(viewer)?.device ?? null;
  const sender = viewer.kind === 'service' ? null : viewer.user;
  const hint = { ...about, originDevice, sender, eventKind: 'MEMBERSHIP', target: null } as const;
  const others = users.filter((user) => !changes.has(user));
  if (others.length > 0 || channel) tell({ users: others, channel }, { ...hint, change: null });
  for (const [user, number] of changes) tell([user], { ...hint, change: number });
  // every member's node must begin or end listening to the channel; the subjects' look by themselves
  if (switched) tell(others, { kind: 'mode', conv });
}

// A change to a conversation under its lock: what decides is read after the lock is held (M5), what changed is one event, and
// who sees it is told after the commit (H1, H9).
import { deviceOf, viaOf, type ConvId, type JsonObject, type Seq, type UserId, type Viewer } from '../model.js';
import type { LockedConv, SystemEvent } from '../store/clock.js';
import type { Membership } from '../store/memberships.js';
import type { Tx } from '../store/store.js';
import { requireCurrent } from './access.js';
import { commit, type Tell } from './commit.js';
import type { ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';

export interface ConvAnswer {
  readonly conv: ConvId;
  readonly duplicate: boolean;
}

/** What a change knows once the lock is held: all of it is fresh (M5). */
export interface Scene {
  readonly tx: Tx;
  readonly tell: Tell;
  readonly conv: LockedConv | null;
  readonly actor: Membership | undefined;
  readonly members: ReadonlyMap<UserId, Membership>;
}

export async function underLock(
  deps: Deps,
  viewer: Viewer,
  id: ConvId,
  subjects: readonly UserId[],
  change: (scene: Scene) => Promise<void>,
): Promise<ConvAnswer> {
  await commit(deps, async (tx, tell) => {
    const conv = await tx.clock.lock(id);
    await deps.failpoint('after lock');
    await requireCurrent(tx, viewer);
    const self = viewer.kind === 'service' ? [] : [viewer.user];
    const members = await tx.memberships.of(id, [...self, ...subjects]);
    const [me] = self;
    await change({ tx, tell, conv, members, actor: me === undefined ? undefined : members.get(me) });
    await requireCurrent(tx, viewer); // again: the change may have waited for users (I5)
  });
  return { conv: id, duplicate: false };
}

type SystemKind = SystemEvent['kind'];
export interface Announcement {
  readonly kind: SystemKind;
  readonly contentType: ContentTypeName;
  readonly content: JsonObject | null;
}

type Place = Pick<LockedConv, 'id' | 'type'>;

export function appendSystemEvent(tx: Tx, viewer: Viewer, conv: Pick<Place, 'id'>, event: Announcement): Promise<Seq> {
  const sender = viewer.kind === 'service' ? null : viewer.user;
  return tx.clock.append(conv.id, { ...event, sender, via: viaOf(viewer) });
}

interface Told extends Pick<Scene, 'tx' | 'tell'> {
  readonly viewer: Viewer;
  readonly conv: Place;
  readonly seq: Seq;
  readonly kind: SystemKind;
  readonly contentType: ContentTypeName;
  /** the subjects, whose own state has changed, each with the number of that change */
  readonly changes: ReadonlyMap<UserId, number>;
}

/**
 * To be called when what the event speaks of has been written: periods opened or closed. The event is news to everybody; to its
 * subjects it is a change of their own state as well (C2), told to each by name: one who has gone, or who is only coming, is
 * no member to ask for. How the conversation's hints travel from here on is settled by its number of members now (H7).
 */
export async function tellOfSystemEvent({ delivery }: Deps, told: Told): Promise<void> {
  const { tx, tell, viewer, seq, kind, contentType, changes } = told;
  const { id: conv, type: conversationType } = told.conv;
  const { switched, users, channel } = await tx.memberships.settle(conv, delivery);
  const about = { kind: 'message', conv, conversationType, head: seq, seq, contentType } as const;
  const originDevice = deviceOf(viewer)?.device ?? null;
  const sender = viewer.kind === 'service' ? null : viewer.user;
  const hint = { ...about, originDevice, sender, eventKind: kind, target: null } as const;
  const others = users.filter((user) => !changes.has(user));
  if (others.length > 0 || channel) tell({ users: others, channel }, { ...hint, change: null });
  for (const [user, number] of changes) tell([user], { ...hint, change: number });
  // every member's node must begin or end listening to the channel; the subjects' look by themselves
  if (switched) tell(others, { kind: 'mode', conv });
}

/** Appends the event and tells the members. `changes`: whose own state it changes, with the numbers drawn for them. */
export async function announce(
  deps: Deps,
  viewer: Viewer,
  { tx, tell }: Pick<Scene, 'tx' | 'tell'>,
  conv: Place,
  { event, changes = new Map() }: { readonly event: Announcement; readonly changes?: ReadonlyMap<UserId, number> },
): Promise<Seq> {
  const seq = await appendSystemEvent(tx, viewer, conv, event);
  const { kind, contentType } = event;
  await tellOfSystemEvent(deps, { tx, tell, viewer, conv, seq, kind, contentType, changes });
  return seq;
}

/** The same for what is true of the whole conversation, which clients ask for again when infoVersion has risen (C4). */
export async function announceFact(
  deps: Deps,
  viewer: Viewer,
  scene: Pick<Scene, 'tx' | 'tell'>,
  conv: Place,
  { contentType, content }: Omit<Announcement, 'kind'>,
): Promise<Seq> {
  await scene.tx.groups.raiseInfoVersion(conv.id);
  return announce(deps, viewer, scene, conv, { event: { kind: 'NOTICE', contentType, content } });
}

// Making conversations and listing them (M6, U3), and the viewer's own settings of them.
import { v7 as uuidv7 } from 'uuid';
import {
  deviceOf,
  type Conv,
  type ConvId,
  type ConvType,
  type JoinPolicy,
  type PersonViewer,
  type Role,
} from '../model.js';
import type { Page, UserId, Viewer } from '../model.js';
import type { Tx } from '../store/store.js';
import { requireCurrent, requirePerson, toLook } from './access.js';
import { commit, type Tell } from './commit.js';
import type { Deps } from './deps.js';
import { byBytes, openDirect } from './direct.js';
import { DomainError, badInput, notMember, overLimit } from './errors.js';
import {
  fingerprintOf,
  fromOpaque,
  requireClientId,
  requireConvId,
  requireFirst,
  requireShort,
  requireKnown,
} from './input.js';
import { requireUserId, requireUsers, toOpaque, toPage } from './input.js';
import { appendSystemEvent, tellOfSystemEvent, type ConvAnswer } from './scene.js';

/** The conversation as the viewer sees it; the service key by itself sees it as nobody in particular. */
export async function conv(deps: Deps, viewer: Viewer, id: ConvId): Promise<Conv> {
  const found =
    viewer.kind === 'service'
      ? await deps.store.conversations.unseen(id)
      : await deps.loads.conv({ ...toLook(viewer), conv: id });
  if (!found) throw notMember();
  return found;
}

export interface ConvsInput {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly orderBy?: 'ACTIVITY' | 'ID' | null | undefined;
  readonly unreadOnly?: boolean | null | undefined;
  readonly lagging?: boolean | null | undefined;
  readonly includeLeft?: boolean | null | undefined;
}
export interface ConvsAnswer extends Page<Conv> {
  readonly asOf: string;
}

export async function convs(deps: Deps, viewer: Viewer, input: ConvsInput): Promise<ConvsAnswer> {
  const person = requirePerson(viewer);
  const first = requireFirst(input.first, 50, deps.limits.maxConvsPage);
  const after = fromConvCursor(input.after);
  const { convs: found, asOf } = await deps.store.conversations.page(toLook(person), {
    first,
    after,
    orderBy: input.orderBy ?? 'ACTIVITY',
    unreadOnly: input.unreadOnly ?? false,
    lagging: input.lagging ?? false,
    includeLeft: input.includeLeft ?? false,
  });
  return { ...toPage(found, first, after), asOf };
}

export const toConvCursor = ({ id, activeAt }: Conv): string => toOpaque(`${activeAt.getTime()} ${id}`);

function fromConvCursor(value: string | null | undefined): { id: ConvId; activeAt: Date } | null {
  if (value == null) return null;
  const [at = '', id = ''] = fromOpaque(value).split(' ');
  const activeAt = new Date(/^\d{1,15}$/u.test(at) ? Number(at) : Number.NaN);
  try {
    if (!Number.isNaN(activeAt.getTime())) return { id: requireConvId(id), activeAt };
  } catch {
    // no conversation id: no cursor of ours
  }
  throw badInput('after is no cursor of this connection');
}

export interface CreateConvInput {
  readonly clientId: string;
  readonly type: ConvType;
  readonly title?: string | null | undefined;
  readonly members: readonly string[];
  readonly owner?: string | null | undefined;
  readonly historyVisible?: boolean | null | undefined;
  readonly joinPolicy?: JoinPolicy | null | undefined;
}
/** What was asked for, checked and in one form, so that the same request has the same fingerprint. */
interface Wish {
  readonly creator: UserId;
  readonly others: readonly UserId[];
  readonly type: ConvType;
  readonly title: string | null;
  readonly historyVisible: boolean;
  readonly joinPolicy: JoinPolicy;
}

export async function createConv(deps: Deps, viewer: Viewer, input: CreateConvInput): Promise<ConvAnswer> {
  const clientId = requireClientId(input.clientId);
  const wish = requireWish(deps, viewer, input);
  const fingerprint = fingerprintOf({ ...wish });
  return commit(deps, async (tx, tell) => {
    const made = await tx.conversations.madeWith(wish.creator, clientId);
    if (made) {
      if (Buffer.compare(made.fingerprint, fingerprint) === 0) return { conv: made.conv, duplicate: true };
      throw new DomainError('IDEMPOTENCY_CONFLICT', 'this clientId made another conversation');
    }
    const users = [wish.creator, ...wish.others];
    const known = await tx.clock.lockUsers(users);
    await requireCurrent(tx, viewer); // after the wait for the users' locks (I5)
    requireKnown(users, known);
    await deps.failpoint('after lock');
    const answer =
      wish.type === 'DIRECT'
        ? await openDirect(tx, tell, viewer, [wish.creator, wish.others[0] ?? wish.creator], {
            contactsOnly: deps.limits.contactsOnly && viewer.kind !== 'service',
          })
        : await openGroup({ deps, tx, tell, viewer, changes: await tx.clock.touch(users) }, wish);
    await tx.conversations.rememberKey(wish.creator, clientId, answer.conv, fingerprint);
    return answer;
  });
}

function requireWish(deps: Deps, viewer: Viewer, input: CreateConvInput): Wish {
  const { type } = input;
  const { maxBatch } = deps.limits;
  if (viewer.kind === 'service' ? input.owner == null : input.owner != null) {
    throw badInput('owner is required with the service key by itself, and refused otherwise');
  }
  const creator = viewer.kind === 'service' ? requireUserId(input.owner ?? '', 'owner') : viewer.user;
  const others = requireUsers(input.members, 'members', maxBatch).filter((user) => user !== creator);
  const title = input.title == null ? null : requireShort(input.title, 'title', 64);
  const wish = {
    creator,
    others: others.toSorted(byBytes),
    type,
    title,
    historyVisible: input.historyVisible ?? false,
  };
  if (type === 'GROUP' && others.length + 1 > deps.limits.maxGroupMembers) {
    throw overLimit('members', deps.limits.maxGroupMembers, 'users');
  }
  if (type === 'DIRECT') {
    if (others.length !== 1) throw badInput('a direct conversation has exactly one other member');
    if (title !== null || wish.historyVisible || input.joinPolicy != null) {
      throw badInput('a direct conversation has no title, joinPolicy or historyVisible');
    }
  }
  return { ...wish, joinPolicy: input.joinPolicy ?? 'INVITE' };
}

/** Every user of the wish was touched, and has a member row to come. */
interface Opening {
  readonly deps: Deps;
  readonly tx: Tx;
  readonly tell: Tell;
  readonly viewer: Viewer;
  readonly changes: ReadonlyMap<UserId, number>;
}

async function openGroup({ deps, tx, tell, viewer, changes }: Opening, wish: Wish): Promise<ConvAnswer> {
  const { creator, others, type, title, joinPolicy, historyVisible } = wish;
  const id = uuidv7() as ConvId;
  await tx.conversations.insert({ id, type, title, joinPolicy, historyVisible, direct: null });
  const begin = async (contentType: 'GROUP_CREATE' | 'MEMBER_INVITE', users: readonly UserId[], role: Role) => {
    const event = { kind: 'MEMBERSHIP', contentType, content: { users } } as const;
    const seq = await appendSystemEvent(tx, viewer, { id }, event);
    await tx.memberships.open(id, users, role, seq);
    return { seq, contentType };
  };
  let last = await begin('GROUP_CREATE', [creator], 'OWNER');
  if (others.length > 0) last = await begin('MEMBER_INVITE', others, 'MEMBER');
  await tellOfSystemEvent(deps, { tx, tell, viewer, conv: { id, type }, kind: 'MEMBERSHIP', changes, ...last });
  return { conv: id, duplicate: false };
}

/** The viewer's own settings. A former member may still mute (M3); nothing changed means nothing is told. */
export async function setConvSettings(
  deps: Deps,
  viewer: Viewer,
  input: { conv: string; muted: boolean },
): Promise<ConvAnswer> {
  const person = requirePerson(viewer);
  const id = requireConvId(input.conv);
  return commit(deps, async (tx, tell) => {
    const before = await requireSeen(tx, person, id);
    if (before.muted !== input.muted) {
      const change = (await tx.clock.touch([person.user])).get(person.user) ?? null;
      const isChanged = await tx.memberships.setMuted(person.user, id, input.muted);
      await requireCurrent(tx, viewer); // after the waits for the user and the member's row (I5)
      if (isChanged) {
        const originDevice = deviceOf(viewer)?.device ?? null;
        const contentType = 'MEMBER_SETTING_UPDATE';
        const about = { conv: id, conversationType: before.type, contentType } as const;
        tell([person.user], { kind: 'conv', ...about, originDevice, change });
      }
    }
    return { conv: id, duplicate: false };
  });
}

async function requireSeen(tx: Tx, viewer: PersonViewer, id: ConvId): Promise<Conv> {
  const [found] = await tx.conversations.seen([{ ...toLook(viewer), conv: id }]);
  if (!found) throw notMember();
  return found;
}

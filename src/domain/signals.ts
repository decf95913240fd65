// Signals: of this moment, to who is online, kept nowhere. No seq, no unread, and what comes too late is dropped (X1–X4).
import { deviceOf, type ConvId, type JsonObject, type PersonViewer, type UserId, type Viewer } from '../model.js';
import { requirePerson, requireService, toLook } from './access.js';
import { tellNow } from './commit.js';
import { requireObject, type SignalType } from './content-types.js';
import type { Deps } from './deps.js';
import { badInput, blocked, notMember } from './errors.js';
import { requireConvId, requireUsers } from './input.js';

export interface SignalInput {
  readonly conv: string;
  readonly contentType: SignalType;
  readonly content?: unknown;
  readonly to?: readonly string[] | null | undefined;
}
export interface SignalAnswer {
  /** how many users are told, wherever they are online */
  readonly users: number;
}

/** To all devices of the members, the sender's other ones included, or of those named. */
export async function signal(deps: Deps, viewer: Viewer, input: SignalInput): Promise<SignalAnswer> {
  const person = requirePerson(viewer);
  await deps.rates.spend('signal', person);
  const conv = requireConvId(input.conv);
  const content = requireSignal(deps, input);
  const { maxSignalled } = deps.limits;
  const named = input.to == null ? null : requireUsers(input.to, 'to', maxSignalled);
  const state = await deps.loads.conv({ ...toLook(person), conv });
  if (!state?.joined) throw notMember();
  if (state.peer !== null) await requireUnblocked(deps, person, state.peer);
  if (named === null && state.mode === 'PULL') throw badInput('in a conversation in PULL mode name the users in `to`');
  const users = await deps.store.memberships.joined(conv, named);
  tellNow(deps, users, {
    kind: 'signal',
    conv,
    conversationType: state.type,
    contentType: input.contentType,
    sender: person.user,
    originDevice: deviceOf(person)?.device ?? null,
    sentAt: Date.now(),
    content,
  });
  return { users: users.length };
}

function requireSignal({ limits }: Deps, { contentType, content }: SignalInput): JsonObject | null {
  if (contentType === 'CALL') return requireObject(content, limits.maxContentBytes);
  if (content != null) throw badInput('TYPING has no content');
  return null;
}

async function requireUnblocked({ loads }: Deps, { user }: PersonViewer, peer: UserId): Promise<void> {
  const theirs = await loads.contact({ user: peer, peer: user });
  if (theirs?.blocked === true) throw blocked();
}

/** From the application's server to every device that is online, on every node. */
export function broadcast(deps: Deps, viewer: Viewer, input: { readonly content?: unknown }): JsonObject {
  requireService(viewer);
  const content = requireObject(input.content, deps.limits.maxContentBytes);
  const nobody = { conv: null as ConvId | null, sender: null, originDevice: null };
  tellNow(deps, 'all', {
    kind: 'signal',
    ...nobody,
    conversationType: 'NONE',
    contentType: 'BROADCAST',
    sentAt: Date.now(),
    content,
  });
  return content;
}

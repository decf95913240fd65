// Sending, recalling and paging messages (L1–L6, S4).
import { deviceOf, type ConvId, type JsonObject, type LogEvent, type Page, type PersonViewer } from '../model.js';
import type { Seq, Viewer } from '../model.js';
import type { Written } from '../store/messages.js';
import { requirePerson, toLook } from './access.js';
import { commit, type Tell } from './commit.js';
import { contentTypes, requireContent, type ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';
import { badInput, notMember, overLimit, refusal } from './errors.js';
import { fingerprintOf, requireClientId, requireConvId, requireFirst, requireUserId } from './input.js';
import { advance } from './read-state.js';

export interface SendInput {
  readonly conv: string;
  readonly clientId: string;
  readonly contentType: ContentTypeName;
  readonly content?: unknown;
  readonly quote?: Seq | null | undefined;
  readonly mentions?: readonly string[] | null | undefined;
  readonly markReadUpTo?: Seq | null | undefined;
}
export interface SendAnswer {
  readonly conv: ConvId;
  readonly event: LogEvent;
  readonly duplicate: boolean;
}

export async function send(deps: Deps, viewer: Viewer, input: SendInput): Promise<SendAnswer> {
  const person = requirePerson(viewer);
  await deps.rates.spend('send', person);
  const message = requireMessage(deps, input);
  const { seq, duplicate } = await commit(deps, async (tx, tell) => {
    const written = await tx.messages.send(person, message);
    const isDuplicate = written.status === 'duplicate';
    if (written.status !== 'ok' && !isDuplicate) throw refusal(written.status, written);
    if (!isDuplicate)
      tellOfEvent(tell, person, message.conv, written, { contentType: message.contentType, target: null });
    // R7: on a repeat too. The lock order holds: send_event has locked the user before the member.
    if (message.markReadUpTo !== null) await advance(tx, tell, person, message.conv, message.markReadUpTo);
    return { seq: written.seq, duplicate: isDuplicate };
  });
  return { conv: message.conv, duplicate, event: await sentEvent(deps, person, { ...message, seq }) };
}

function requireMessage(deps: Deps, input: SendInput) {
  const conv = requireConvId(input.conv);
  const clientId = requireClientId(input.clientId);
  const { contentType } = input;
  const content = requireContent(contentType, input.content, deps.limits.maxContentBytes);
  const quote = input.quote ?? null;
  const { maxMentions } = deps.limits;
  const mentions = [...new Set((input.mentions ?? []).map((id) => requireUserId(id, 'mentions')))];
  if (mentions.length > maxMentions) throw overLimit('mentions', maxMentions, 'users');
  const fingerprint = fingerprintOf({ conv, contentType, content, quote, mentions });
  const { counts } = contentTypes[contentType];
  return {
    conv,
    clientId,
    contentType,
    counts,
    content,
    fingerprint,
    quote,
    mentions,
    markReadUpTo: input.markReadUpTo ?? null,
    contactsOnly: deps.limits.contactsOnly,
  };
}

/** The stored event, or what is left of it below the floor: the sender has just shown the same content (L3). */
async function sentEvent(
  deps: Deps,
  viewer: PersonViewer,
  sent: { conv: ConvId; seq: Seq; clientId: string; contentType: string; content: JsonObject },
): Promise<LogEvent> {
  const { conv, seq, clientId, contentType } = sent;
  const event = await deps.loads.event({ user: viewer.user, conv, seq });
  if (event) return event;
  const key = await deps.store.messages.sentKey(viewer.user, clientId);
  if (!key) throw new Error(`the key of ${conv}:${seq} is gone`);
  const { createdAt, via, recalled, recalledBy } = key;
  const content = recalled ? null : sent.content;
  const rest = { kind: 'MESSAGE', quote: null, mentions: [], target: null } as const;
  return {
    ...rest,
    conv,
    seq,
    contentType,
    sender: viewer.user,
    createdAt,
    via,
    clientId,
    content,
    recalled,
    recalledBy,
  };
}

/** Tells everyone who may see it that the log rose to this event (H1). */
export function tellOfEvent(
  tell: Tell,
  viewer: PersonViewer,
  conv: ConvId,
  { seq, conversationType, audience, channel }: Pick<Written, 'seq' | 'conversationType' | 'audience' | 'channel'>,
  { contentType, target }: { contentType: ContentTypeName; target: Seq | null },
): void {
  const eventKind = contentTypes[contentType].kind;
  if (eventKind === null) throw new Error(`${contentType} is no event`);
  const originDevice = deviceOf(viewer)?.device ?? null;
  const hint = {
    kind: 'message',
    conv,
    conversationType,
    head: seq,
    seq,
    eventKind,
    contentType,
    originDevice,
    target,
    change: null,
  } as const;
  tell({ users: audience ?? [], channel: channel ?? false }, { ...hint, sender: viewer.user });
}

export interface RecallAnswer {
  readonly conv: ConvId;
  readonly event: LogEvent;
  readonly target: LogEvent;
}

export async function recall(deps: Deps, viewer: Viewer, input: { conv: string; seq: Seq }): Promise<RecallAnswer> {
  const person = requirePerson(viewer);
  const conv = requireConvId(input.conv);
  const { user } = person;
  const seq = await commit(deps, async (tx, tell) => {
    const written = await tx.messages.recall(person, conv, input.seq, deps.limits.recallWindowMs);
    if (written.status !== 'ok' && written.status !== 'already') throw refusal(written.status);
    if (written.status === 'ok') tellOfEvent(tell, person, conv, written, { contentType: 'RECALL', target: input.seq });
    return written.seq;
  });
  const [event, target] = await Promise.all([
    deps.loads.event({ user, conv, seq }),
    deps.loads.event({ user, conv, seq: input.seq }),
  ]);
  // only retention can come between the commit and this look
  if (!event || !target) throw notMember();
  return { conv, event, target };
}

export interface HistoryInput {
  readonly conv: string;
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

/** Pages ascend, whichever end they are taken from; a cursor is the event's seq in decimal, for ever (S4). */
export async function history(deps: Deps, viewer: Viewer, input: HistoryInput): Promise<Page<LogEvent>> {
  const person = requirePerson(viewer);
  const conv = requireConvId(input.conv);
  if (input.first != null && input.last != null) throw badInput('first and last cannot go together');
  const newestFirst = input.first == null;
  const limit = requireFirst(
    newestFirst ? input.last : input.first,
    50,
    deps.limits.maxPage,
    newestFirst ? 'last' : 'first',
  );
  const after = requireSeqCursor(input.after, 'after') ?? 0;
  const before = requireSeqCursor(input.before, 'before') ?? Number.MAX_SAFE_INTEGER;
  return deps.store.read(async (tx) => {
    const [state] = await tx.conversations.seen([{ ...toLook(person), conv }]);
    if (!state) throw notMember();
    const page = await tx.messages.page(person.user, conv, { after, before, limit, newestFirst });
    const items = page.slice(0, limit);
    if (newestFirst) items.reverse();
    // beyond the bounds of this page: one row tells, past hidden gaps and never below the floor
    const beyond = (range: { after: Seq; before: Seq; newestFirst: boolean }) =>
      tx.messages.page(person.user, conv, { ...range, limit: 0 }).then((rows) => rows.length > 0);
    const [oldest, newest] = [items.at(0)?.seq ?? before, items.at(-1)?.seq ?? after];
    return {
      items,
      hasPrevious:
        newestFirst && page.length > limit ? true : await beyond({ after: 0, before: oldest, newestFirst: true }),
      hasNext:
        !newestFirst && page.length > limit
          ? true
          : await beyond({ after: newest, before: Number.MAX_SAFE_INTEGER, newestFirst: false }),
    };
  });
}

function requireSeqCursor(value: string | null | undefined, name: string): Seq | null {
  if (value == null) return null;
  if (!/^\d{1,15}$/u.test(value)) throw badInput(`${name} is a cursor of this connection: a seq in decimal`);
  return Number(value);
}

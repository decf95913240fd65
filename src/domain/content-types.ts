// The registry of content types: what a payload is, whether it is stored, whether it counts as unread, and the shape of
// what users may send. A new type is one entry here.
import { z } from 'zod';
import type { EventKind, JsonObject } from '../model.js';
import { badInput, overLimit } from './errors.js';
import { isStorable } from './input.js';

const maxTextLength = 4_096;
const maxDepth = 32;
const characters = (text: string) => Array.from(text).length;
const text = (max: number) => z.string().refine((value) => characters(value) <= max, `is at most ${max} characters`);
const shortText = text(255);
const size = z.number().int().min(0);
const badScheme = /^(javascript|data|vbscript|file):/iu;
// what a browser passes over when it reads a scheme, and more
const ignored = /[\u0000-\u0020\u007f-\u00a0\p{White_Space}]/gu;
const url = z
  .string()
  .min(1)
  .max(2_048)
  .refine((value) => !badScheme.test(value.replace(ignored, '')), 'has a scheme that is not allowed');

const message = {
  TEXT: z.strictObject({ text: text(maxTextLength).refine((value) => value.trim() !== '', 'is blank') }),
  IMAGE: z.strictObject({ url, width: size.optional(), height: size.optional(), size: size.optional() }),
  VOICE: z.strictObject({ url, durationMs: size }),
  VIDEO: z.strictObject({ url, durationMs: size, coverUrl: url.optional() }),
  FILE: z.strictObject({ url, name: shortText, size: size.optional() }),
  MERGE: z.strictObject({
    title: shortText,
    items: z
      .array(
        z.strictObject({
          senderName: shortText,
          contentType: z.string().max(64),
          content: z.record(z.string(), z.json()),
        }),
      )
      .min(1)
      .max(100),
  }),
  CARD: z.strictObject({ kind: z.enum(['user', 'group']), id: z.string().min(1).max(64) }),
  FACE: z.union([z.strictObject({ id: z.string().min(1).max(64) }), z.strictObject({ url })]),
  MATERIAL: z.strictObject({ title: shortText, url, coverUrl: url.optional(), summary: shortText.optional() }),
} as const satisfies Record<string, z.ZodType>;

interface ContentType {
  /** null: never an event of a log, only told */
  readonly kind: EventKind | null;
  readonly counts: boolean;
  readonly about: string;
}
const sent = (about: string): ContentType => ({ kind: 'MESSAGE', counts: true, about });
const membership = (about: string): ContentType => ({ kind: 'MEMBERSHIP', counts: false, about });
const notice = (about: string): ContentType => ({ kind: 'NOTICE', counts: false, about });
const told = (about: string): ContentType => ({ kind: null, counts: false, about });

export const contentTypes = {
  TEXT: sent('{ text }: 1 to 4,096 characters, not blank'),
  IMAGE: sent('{ url width? height? size? }: pixels, bytes; a URL has at most 2,048 characters'),
  VOICE: sent('{ url durationMs }: milliseconds'),
  VIDEO: sent('{ url durationMs coverUrl? }'),
  FILE: sent('{ url name size? }: a name of at most 255 characters; bytes'),
  MERGE: sent('{ title items: [{ senderName contentType content }] }: 1 to 100 forwarded messages'),
  CARD: sent('{ kind id }: kind is user or group'),
  FACE: sent('{ id } or { url }'),
  MATERIAL: sent('{ title url coverUrl? summary? }: an article; texts of at most 255 characters'),
  GROUP_CREATE: membership('{ users }: the group was made; begins the creator’s membership'),
  MEMBER_INVITE: membership('{ users }: begins the membership of all of them'),
  MEMBER_ENTER: membership('{ users }: the sender joined'),
  MEMBER_QUIT: membership('{ users }: the sender left; the last event they see'),
  MEMBER_KICK: membership('{ users }: these were removed; the last event they see'),
  RECALL: { kind: 'RECALL', counts: false, about: 'no content; `target` is the recalled event' },
  GROUP_INFO_UPDATE: notice('{ avatarUrl? joinPolicy? historyVisible? }: what is new of the group'),
  NAME_UPDATE: notice('{ title }: the group’s new name'),
  NOTICE_UPDATE: notice('{ notice }: the group’s new notice; null: none'),
  OWNER_TRANSFER: notice('{ from to }: user ids'),
  ADMIN_ADD: notice('{ users }: admins from here on'),
  ADMIN_REMOVE: notice('{ users }: ordinary members from here on'),
  MEMBER_MUTED: notice('{ users until }: may not send until then'),
  MEMBER_UNMUTED: notice('{ users }: may send again'),
  GROUP_MUTED: notice('no content: only owner and admins may send'),
  GROUP_UNMUTED: notice('no content: all may send again'),
  GROUP_BANNED: notice('{ banned }: nobody may send, or all may again; by the service'),
  GROUP_DISSOLVE: membership('no content: the end of the group, the last event that anyone sees'),
  MESSAGE_PIN: notice('{ seq }: pinned'),
  MESSAGE_UNPIN: notice('{ seq }: no longer pinned'),
  FRIEND_ADD: { kind: 'NOTICE', counts: false, about: '{ users }: the two are contacts from here on' },
  READ: told('the viewer’s own read position rose'),
  DIRECT_CREATE: told('a direct conversation with the viewer was opened'),
  FRIEND_REQUEST_RECEIVED: told('somebody asks to be a contact; the asker’s own devices are told too'),
  FRIEND_REQUEST_APPROVED: told('a contact request was accepted; both are told'),
  FRIEND_REQUEST_REJECTED: told('a contact request was refused; both are told'),
  FRIEND_REQUEST_WITHDRAWN: told('a contact request was taken back; both are told'),
  FRIEND_DELETE: told('the viewer deleted a contact; the other is not told'),
  FRIEND_BLOCK: told('the viewer blocked a user; the other is not told'),
  FRIEND_UNBLOCK: told('the viewer unblocked a user; the other is not told'),
  FRIEND_UPDATE: told('the viewer’s own remark, mute or pin of a contact'),
  FRIEND_INFO_UPDATED: told('the name or picture of a contact changed'),
  GROUP_REQUEST_RECEIVED: told(
    'somebody asks to join, or to add somebody; owner, admins, applicant and inviter are told',
  ),
  GROUP_REQUEST_APPROVED: told('a request to join was approved; the same are told'),
  GROUP_REQUEST_REJECTED: told('a request to join was refused; the same are told'),
  GROUP_REQUEST_WITHDRAWN: told('the viewer handles the requests of a group no longer'),
  TYPING: told('a signal without content: the sender is writing'),
  CALL: told('a signal with whatever content the clients agree on: calls and the like'),
  BROADCAST: told('a signal of the service to everybody who is online'),
  MEMBER_NICKNAME_UPDATE: told('a member’s name in the group; see the members'),
  MEMBER_SETTING_UPDATE: told('the viewer’s own settings of a conversation changed'),
} as const satisfies Record<string, ContentType>;

export type ContentTypeName = keyof typeof contentTypes;
export type SignalType = 'TYPING' | 'CALL';

/** Any JSON object that can be stored and is not too large. @throws BAD_USER_INPUT */
export function requireObject(content: unknown, maxBytes: number): JsonObject {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) throw badInput('content is an object');
  requireShallow(content);
  requireSmall(content, maxBytes);
  return content as JsonObject;
}
export type SendableType = keyof typeof message;

const isSendable = (name: string): name is SendableType => Object.hasOwn(message, name);

/** Checks what a user sends. @throws BAD_USER_INPUT naming what is wrong and where */
export function requireContent(contentType: ContentTypeName, content: unknown, maxBytes: number): JsonObject {
  if (!isSendable(contentType)) throw badInput(`users cannot send ${contentType}`);
  // before anything walks it to its end
  requireShallow(content);
  const { data, error } = message[contentType].safeParse(content);
  if (error) {
    const [issue] = error.issues;
    throw badInput(
      `content${issue?.path.map((key) => `.${String(key)}`).join('') ?? ''}: ${issue?.message ?? 'malformed'}`,
    );
  }
  // 4,096 characters of most scripts are more than that: of a text the characters are the limit
  requireSmall(data, contentType === 'TEXT' ? Infinity : maxBytes);
  return data;
}

function requireShallow(content: unknown): void {
  if (isDeeper(content, maxDepth)) throw overLimit('the depth of content', maxDepth, 'levels');
}

/** And of keys and texts that can be stored. */
function requireSmall(content: object, maxBytes: number): void {
  const bytes = Buffer.byteLength(JSON.stringify(content, requireStorable));
  if (bytes > maxBytes) throw overLimit('content', maxBytes, 'bytes');
}

function isDeeper(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return max === 0 || Object.values(value).some((inner) => isDeeper(inner, max - 1));
}

/** Keys and texts, however deep. */
function requireStorable(key: string, value: unknown): unknown {
  if (isStorable(key) && (typeof value !== 'string' || isStorable(value))) return value;
  throw badInput('content has a NUL or half a character in it');
}

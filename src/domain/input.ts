// Checks of what clients send that the GraphQL types do not make. Each throws BAD_USER_INPUT before any work is done (P1).
import { createHash } from 'node:crypto';
import stringify from 'safe-stable-stringify';
import type { ConvId, DeviceId, Page, UserId } from '../model.js';
import { badInput, notMember, overLimit } from './errors.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;
const deviceId = /^[A-Za-z0-9_-]{1,64}$/u;
const control = /[\u0000-\u001f\u007f]/u;
const unstorable = /[\u0000\p{Surrogate}]/u;

/** Not so: NUL, and half a surrogate pair. Postgres refuses the first; of the second others would make something else. */
export const isStorable = (value: string): boolean => !unstorable.test(value);

/** What is no conversation id is no conversation: the same answer as for a missing one (M4). */
export function requireConvId(value: string): ConvId {
  if (!uuid.test(value)) throw notMember();
  return value as ConvId;
}

/** In a list a malformed id is asked for as one that no conversation has: it fails alone, like a missing one. */
export const toConvId = (value: string): ConvId =>
  (uuid.test(value) ? value : '00000000-0000-0000-0000-000000000000') as ConvId;

export function requireUserId(value: string, name = 'user'): UserId {
  return requireShort(value, name, 64) as UserId;
}

export function requireDeviceId(value: string): DeviceId {
  if (!deviceId.test(value)) throw badInput('deviceId is 1 to 64 of [A-Za-z0-9_-]');
  return value as DeviceId;
}

/** One line of text, 1 to `max` characters. */
export function requireShort(value: string, name: string, max: number): string {
  const length = Array.from(value).length;
  if (length === 0) throw badInput(`${name} is empty`);
  if (length > max) throw overLimit(name, max, 'characters');
  if (control.test(value) || !isStorable(value)) throw badInput(`${name} has control characters or half a character`);
  return value;
}

/** Text of several lines, 1 to `max` characters. */
export function requireText(value: string, name: string, max: number): string {
  const length = Array.from(value).length;
  if (value.trim() === '') throw badInput(`${name} is blank`);
  if (length > max) throw overLimit(name, max, 'characters');
  if (!isStorable(value)) throw badInput(`${name} has a NUL or half a character in it`);
  return value;
}

export const requireClientId = (value: string): string => requireShort(value, 'clientId', 64);

export function requireUrl(value: string, name: string, max: number): string {
  requireShort(value, name, max);
  const scheme = URL.canParse(value) ? new URL(value).protocol : '';
  if (scheme !== 'https:' && scheme !== 'http:') throw badInput(`${name} is an http or https address`);
  return value;
}

/** A page size between 1 and `max`. */
export function requireFirst(value: number | null | undefined, fallback: number, max: number, name = 'first'): number {
  const first = value ?? fallback;
  if (first > max) throw overLimit(name, max, 'items');
  if (first < 1) throw badInput(`${name} is at least 1`);
  return first;
}

/** Of what was found when one more than `first` was asked for; `after`: where it was to begin, null: at the start. */
export const toPage = <T>(found: readonly T[], first: number, after: unknown): Page<T> => ({
  items: found.slice(0, first),
  hasPrevious: after !== null,
  hasNext: found.length > first,
});

/** Distinct user ids, of at most `max` given. */
export function requireUsers(values: readonly string[], name: string, max: number): UserId[] {
  if (values.length > max) throw overLimit(name, max, 'items');
  return [...new Set(values.map((value) => requireUserId(value, name)))];
}

/** @throws BAD_USER_INPUT naming the first whom the database does not have */
export function requireKnown(users: readonly UserId[], known: { has(user: UserId): boolean }): void {
  const stranger = users.find((user) => !known.has(user));
  if (stranger !== undefined) throw badInput(`there is no user ${stranger}`);
}

/** sha256 over the canonical JSON of a request: what "the same content" means for a clientId (L3). */
export function fingerprintOf(request: Readonly<Record<string, unknown>>): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(stringify(request)).digest());
}

/** Opaque cursors and tokens: base64url of a short text. */
export const toOpaque = (value: string): string => Buffer.from(value).toString('base64url');
export const fromOpaque = (value: string): string => Buffer.from(value, 'base64url').toString();

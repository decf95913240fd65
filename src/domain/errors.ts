// The closed list of refusals. A use case throws a DomainError inside its transaction, which rolls back: it changes nothing.
import { isUnavailable } from '../store/unavailable.js';

/** Every `extensions.code` that a client can meet, and what it means. */
export const errorCodes = {
  UNAUTHENTICATED: 'No credential, or one that is malformed, unknown or revoked. Sign in again.',
  FORBIDDEN: 'The viewer may not do this.',
  NOT_MEMBER:
    'The conversation does not exist or was never visible to the viewer; for a write: the viewer is no member now.',
  CURSOR_AHEAD: 'The position lies above the head of the log; `head` says where it ends. Sync first.',
  STALE_INSTALL:
    'The credential is of an earlier install of this device; `installEpoch` is the current one. Never reinstall by itself.',
  IDEMPOTENCY_CONFLICT: 'This clientId was used for something else. Nothing was stored.',
  NOT_RECALLABLE:
    'The event cannot be recalled by this viewer: not a message, not visible, not theirs, or the window is over.',
  MUTED: 'The viewer is muted in this conversation.',
  BLOCKED: 'The other user has blocked the viewer.',
  BAD_USER_INPUT: 'An argument is malformed or breaks a limit; `limit` names the limit and its value where it is one.',
  RATE_LIMITED: 'Too many requests: nothing was done, the same passes after `retryAfterMs`.',
  CONFLICT: 'Somebody else was first; `outcome` says what holds now.',
  GRAPHQL_PARSE_FAILED: 'The document is not GraphQL.',
  GRAPHQL_VALIDATION_FAILED: 'The document does not fit the schema.',
  INTERNAL_SERVER_ERROR:
    'Unexpected; `requestId` finds it in the log. With `reason: UNAVAILABLE` the database, or the bus of the hints, could not be had: try again after `retryAfterMs`. Nothing is known about what happened: do the very same again, every mutation may be repeated (with the same clientId, deviceId or installId).',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Whether the same request may succeed later without being changed. */
export const isRetryable = (code: ErrorCode): boolean => code === 'RATE_LIMITED' || code === 'INTERNAL_SERVER_ERROR';

export type ErrorFacts = Readonly<Record<string, string | number | boolean>>;

export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly code: ErrorCode;
  /** what a client needs besides the code: head, limit, installEpoch … */
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message);
    this.code = code;
    this.facts = facts;
  }
}

/** Why one item of an answer failed; no Error, for GraphQL would throw it and fail the whole. */
export interface ItemError {
  readonly code: ErrorCode;
  readonly message: string;
}
export const toItemError = ({ code, message }: DomainError): ItemError => ({ code, message });

export const badInput = (message: string, facts: ErrorFacts = {}) => new DomainError('BAD_USER_INPUT', message, facts);
export const overLimit = (name: string, limit: number, unit: string) =>
  badInput(`${name} is at most ${limit} ${unit}`, { limit });
export const forbidden = (message: string) => new DomainError('FORBIDDEN', message);
/** One answer for a missing conversation and a foreign one (M4). */
export const notMember = () => new DomainError('NOT_MEMBER', 'no such conversation for this viewer');
export const cursorAhead = (head: number) => new DomainError('CURSOR_AHEAD', `the log ends at ${head}`, { head });

export const rateLimited = (retryAfterMs: number) =>
  new DomainError('RATE_LIMITED', `too many: try again in ${retryAfterMs} ms`, { retryAfterMs });

/** Spread, so that those who were refused together do not come back together. */
export const retrySoonMs = (): number => 1_000 + Math.floor(Math.random() * 1_000);

export const unavailable = (what: string) =>
  new DomainError('INTERNAL_SERVER_ERROR', `${what} not available now: try again`, {
    reason: 'UNAVAILABLE',
    retryAfterMs: retrySoonMs(),
  });

/** Null for what is a fault of ours. Whether a commit had happened is not known, so the code does not say that it had not. */
export const toUnavailable = (error: unknown): DomainError | null =>
  isUnavailable(error) ? unavailable('the database is') : null;

export const staleInstall = (installEpoch: number) =>
  new DomainError('STALE_INSTALL', 'this credential is of an earlier install of the device', { installEpoch });

export const blocked = () => new DomainError('BLOCKED', 'the other user has blocked the viewer');
/** Somebody else was first: what holds now. */
export const conflict = (outcome: string) => new DomainError('CONFLICT', `it is ${outcome} already`, { outcome });

/** A refusal that a database function decided under the lock, as the error that the client sees. */
export function refusal(status: string, facts: { readonly head?: number | null } = {}): DomainError {
  const [name = '', epoch] = status.split(' ');
  switch (name) {
    case 'not_member':
      return notMember();
    case 'cursor_ahead':
      return cursorAhead(facts.head ?? 0);
    case 'revoked':
      return new DomainError('UNAUTHENTICATED', 'this device has been revoked', { reason: 'REVOKED' });
    case 'stale_install':
      return staleInstall(Number(epoch));
    case 'conflict':
      return new DomainError('IDEMPOTENCY_CONFLICT', 'this clientId was used for something else');
    case 'bad_quote':
      return badInput('the quoted event is not visible to the sender, is recalled, or is no message');
    case 'banned':
      return forbidden('the service has closed this conversation to messages');
    case 'reader':
      return forbidden('only owner and admins write in a channel');
    case 'muted':
      return new DomainError('MUTED', 'the viewer may not send here now; see allMuted and silencedUntil');
    case 'blocked':
      return blocked();
    case 'no_contact':
      return forbidden('only contacts may write to each other here');
    case 'not_recallable':
      return new DomainError('NOT_RECALLABLE', 'this viewer cannot recall that event');
    default:
      throw new Error(`unknown refusal ${status}`);
  }
}

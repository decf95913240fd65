// Whether the database could not be had: no free connection, no server, no answer in time. Not what it refused.

/** Of Postgres: a connection broke, too many of them, no answer in time, a lock not had, a server that stops or starts. */
const state = /^(?:08\w{3}|53\w{3}|57014|57P0[1-5]|55P03|25P0[34])$/u;
/** Of Prisma: no server, no connection, a transaction that could not begin or took too long. */
const prismaCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2037']);
const prismaKinds = new Set(['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout', 'TooManyConnections']);
const network = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'EPIPE', 'ETIMEDOUT']);
/** Of pg and its pool, which have no codes of their own. */
const message =
  /^(?:timeout exceeded when trying to connect|timeout expired|Query read timeout|Connection terminated|Client (?:has encountered a connection error|was closed)|Cannot use a pool after calling end)/u;

interface Thrown {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly kind?: unknown;
  readonly originalCode?: unknown;
  readonly meta?: { readonly driverAdapterError?: unknown };
}

export function isUnavailable(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, message: text, cause, kind, originalCode, meta } = error as Thrown;
  const says = (value: unknown): value is string => typeof value === 'string';
  return (
    [code, originalCode].some((c) => says(c) && (state.test(c) || prismaCodes.has(c) || network.has(c))) ||
    (says(kind) && prismaKinds.has(kind)) ||
    (says(text) && message.test(text)) ||
    isUnavailable(cause) ||
    isUnavailable(meta?.driverAdapterError)
  );
}

// What a client is told of an error: a code of the closed list, whether to retry, the facts it needs, and nothing else.
// One function for every lane: HTTP, event streams, WebSocket (P2, P6).
import { GraphQLError, Kind } from 'graphql';
import type { Logger } from 'pino';
import {
  DomainError,
  errorCodes,
  isRetryable,
  toUnavailable,
  type ErrorCode,
  type ErrorFacts,
} from '../domain/errors.js';
import type { Metrics } from '../metrics.js';

/** Makes any thrown thing fit to leave; the same error again comes back unchanged. */
export type ErrorGate = (error: unknown, requestId: string, status?: number) => GraphQLError;

interface Verdict {
  readonly code: ErrorCode;
  readonly message: string;
  readonly facts?: ErrorFacts;
}

export function createErrorGate(log: Logger, metrics: Metrics): ErrorGate {
  const passed = new WeakSet<GraphQLError>();

  return (error, requestId, status) => {
    const earlier = chainOf(error).find((link): link is GraphQLError => isGraphQLError(link) && passed.has(link));
    if (earlier) return earlier;
    const root = chainOf(error).at(-1);
    const located = error instanceof GraphQLError ? error : null;
    const [missing, told] = [toUnavailable(root), { err: root, requestId, path: located?.path }];
    const verdict = missing ?? judge(error);
    if (missing) {
      log.warn(told, 'the database could not be had');
      metrics.databaseFailed();
    } else if (verdict === null) log.error(told, 'unexpected error');
    const { code, message, facts } = verdict ?? unexpected;
    const clean = new GraphQLError(message, {
      ...placeOf(located),
      extensions: {
        ...facts,
        code,
        retryable: isRetryable(code),
        ...(code === 'INTERNAL_SERVER_ERROR' ? { requestId } : {}),
        ...(status === undefined ? httpOf(located) : { http: { status, headers: { 'retry-after': '1' } } }),
      },
    });
    passed.add(clean);
    metrics.errorLeft(code);
    return clean;
  };
}

const unexpected: Verdict = { code: 'INTERNAL_SERVER_ERROR', message: 'Unexpected error.' };

const isGraphQLError = (error: unknown): error is GraphQLError => error instanceof GraphQLError;

/** The error and what it wraps, outermost first. */
function chainOf(error: unknown): unknown[] {
  const chain = [error];
  for (let at = error; at instanceof GraphQLError && at.originalError; at = at.originalError)
    chain.push(at.originalError);
  return chain;
}

/** Null: nobody foresaw it, so nothing of it may be shown. */
function judge(error: unknown): Verdict | null {
  const chain = chainOf(error);
  const root = chain.at(-1);
  if (root instanceof DomainError) return root;
  if (!(error instanceof GraphQLError)) return null;
  // A variable of the wrong form is reported over whatever the scalar threw.
  if (error.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION) return { code: 'BAD_USER_INPUT', message: error.message };
  if (!(root instanceof GraphQLError)) return null;
  const code = codeOf(root);
  return code === null ? null : { code, message: root.message };
}

function codeOf(error: GraphQLError): ErrorCode | null {
  const { code } = error.extensions;
  if (typeof code === 'string') return Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : (foreign[code] ?? null);
  if (error.message.startsWith('Syntax Error')) return 'GRAPHQL_PARSE_FAILED';
  // Without a place in the answer: the request itself was refused before anything ran.
  if (error.path === undefined) return 'BAD_USER_INPUT';
  // At a field the server broke its own schema; at an argument the client did.
  const kind = error.nodes?.[0]?.kind;
  return kind === undefined || kind === Kind.FIELD ? null : 'BAD_USER_INPUT';
}

/** Codes of the libraries below us. */
const foreign: Readonly<Record<string, ErrorCode>> = {
  BAD_REQUEST: 'BAD_USER_INPUT',
  REQUEST_ENTITY_TOO_LARGE: 'BAD_USER_INPUT',
  OPERATION_RESOLUTION_FAILURE: 'BAD_USER_INPUT',
};

/** Yoga's own note about the answer's status: it takes it out again before anything is sent. */
function httpOf(error: GraphQLError | null): { readonly http?: object } {
  const { http, code } = error?.extensions ?? {};
  if (typeof http !== 'object') return {};
  // no request of GraphQL at all: a 4xx whatever the client accepts
  return { http: typeof code === 'string' && code in foreign ? { ...http, spec: false } : http };
}

/** As it goes over a WebSocket, where there is no status. */
export function withoutHttp(error: GraphQLError): GraphQLError {
  if (error.extensions.http === undefined) return error;
  const { http: _, ...extensions } = error.extensions;
  return new GraphQLError(error.message, { ...placeOf(error), extensions });
}

/** Where it happened: in the document and in the answer. */
const placeOf = (error: GraphQLError | null) => ({
  nodes: error?.nodes ?? null,
  source: error?.source ?? null,
  positions: error?.positions ?? null,
  path: error?.path ?? null,
});

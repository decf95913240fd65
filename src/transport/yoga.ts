// The GraphQL engine of every lane: one list of plugins, limits and caches for HTTP, event streams and WebSocket (P1).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { validate, ValuesOfCorrectTypeRule, type DocumentNode, type GraphQLSchema, type ValidationRule } from 'graphql';
import { createYoga, type Plugin, type YogaServerInstance } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Deps } from '../domain/deps.js';
import type { Authentication } from '../domain/devices.js';
import { schema } from '../schema/index.js';
import type { Context } from '../schema/context.js';
import type { Leave } from './admission.js';
import type { Authenticator } from './auth.js';
import { parseBounded } from './documents.js';
import type { ErrorGate } from './errors.js';
import { useEventStreams, type EventStreams } from './event-streams.js';
import { noteCodes, useMeasure, type Notes } from './operations.js';

const maxBodyBytes = 256 * 1024;
/** Characters of documents remembered: a parsed one takes some hundred times its text. */
const maxCachedText = 250_000;

/** What server.ts gives with each request. */
export interface ServerContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requestId: string;
  readonly notes: Notes;
  /** the place that the request takes among those under way, until it is answered */
  readonly leave: Leave;
}
/** What a WebSocket gives with each operation. */
export interface SocketContext extends Pick<Context, 'auth' | 'connection'> {
  readonly requestId: string;
  readonly notes: Notes;
}
export type OperationContext = Context & {
  readonly requestId: string;
  readonly notes: Notes;
  readonly res?: ServerResponse;
  readonly leave?: Leave;
};
export type GraphQLEngine = YogaServerInstance<ServerContext, OperationContext>;

export interface EngineOptions {
  readonly deps: Deps;
  readonly authenticator: Authenticator;
  readonly gate: ErrorGate;
  readonly streams: EventStreams;
  readonly production: boolean;
  readonly log: Logger;
}

export function createEngine(options: EngineOptions): GraphQLEngine {
  const { deps, authenticator, gate, streams, production, log } = options;
  async function authenticate({ req, requestId }: ServerContext): Promise<Authentication> {
    try {
      return await authenticator.ofRequest(req.headers);
    } catch (error) {
      throw gate(error, requestId, 503); // nothing ran (P6)
    }
  }
  return createYoga<ServerContext, OperationContext>({
    schema,
    graphqlEndpoint: '/graphql',
    context: async (initial) => {
      const { auth } = initial as { readonly auth?: Authentication };
      if (auth) return { deps } as OperationContext; // a socket authenticates once
      return { deps, auth: await authenticate(initial), connection: null } as OperationContext;
    },
    plugins: [useMeasure(deps.metrics), useStrictDocuments(production), useErrorGate(gate), useEventStreams(streams)],
    parserAndValidationCache: { documentCache: textCache<DocumentNode>(), errorCache: textCache<Error>() },
    maxRequestBodySize: maxBodyBytes,
    // the gate does it, with the request's id
    maskedErrors: false,
    batching: false,
    multipart: false,
    // server.ts answers these, for every lane
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: toYogaLog(log),
  });
}

const textCache = <T extends object>() =>
  new LRUCache<string, T>({ max: 1_000, maxSize: maxCachedText, sizeCalculation: (_, text) => text.length + 1 });

/** Bounded documents, no hints about names in production, and literals of the wrong form told apart from wrong documents. */
function useStrictDocuments(production: boolean): Plugin {
  return {
    onParse({ setParseFn }) {
      setParseFn(parseBounded);
    },
    onValidate({ setValidationFn }) {
      setValidationFn((target: GraphQLSchema, document: DocumentNode, rules?: readonly ValidationRule[]) =>
        validate(target, document, rules?.map(markingLiterals), { hideSuggestions: production, maxErrors: 50 }),
      );
    },
  };
}

function markingLiterals(rule: ValidationRule): ValidationRule {
  if (rule !== ValuesOfCorrectTypeRule) return rule;
  return (context) => {
    const marking = Object.create(context) as typeof context;
    marking.reportError = (error) => {
      error.extensions['code'] = 'BAD_USER_INPUT';
      context.reportError(error);
    };
    return ValuesOfCorrectTypeRule(marking);
  };
}

/** Every error that leaves passes the gate, wherever it comes from. */
function useErrorGate(gate: ErrorGate): Plugin<OperationContext, ServerContext> {
  const clean = <T extends { errors?: readonly unknown[] | undefined }>(
    result: T,
    { requestId, notes }: Pick<ServerContext, 'requestId' | 'notes'>,
  ): T => {
    if (!result.errors) return result;
    const errors = result.errors.map((error) => gate(error, requestId));
    noteCodes(notes, errors);
    return { ...result, errors };
  };
  return {
    onExecute: ({ args }) => ({
      onExecuteDone: ({ result, setResult }) => {
        if (!isStream(result)) setResult(clean(result, args.contextValue));
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult: ({ result: first, setResult: setFirst }) => {
        if (!isStream(first)) setFirst(clean(first, args.contextValue));
        return {
          onNext: ({ result, setResult }) => {
            if (!isStream(result)) setResult(clean(result, args.contextValue));
          },
        };
      },
      onSubscribeError: ({ error, setError }) => {
        setError(gate(error, args.contextValue.requestId));
      },
    }),
    onResultProcess: (answer) => {
      const { result, serverContext } = answer;
      if (!isStream(result) && !Array.isArray(result)) answer.setResult(clean(result, serverContext));
    },
  };
}

const isStream = (value: object): value is AsyncIterable<unknown> => Symbol.asyncIterator in value;

function toYogaLog(log: Logger) {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (...args: unknown[]) => {
      // an error may quote what a client sent
      log[level]({ yoga: args.filter((arg) => typeof arg === 'string') }, 'yoga');
    };
  // what Yoga calls errors the gate has logged already
  return { debug: () => undefined, info: at('debug'), warn: at('warn'), error: at('debug') };
}

// Live subscriptions of an actor, waited for until they are live.
import type { LiveSubscription, TestSocket } from './live-socket.js';
import type { Actor } from './world.js';

export interface ReadHintRow {
  readonly resync: string | null;
  readonly conv: { readonly id: string; readonly read: number; readonly unread: number; readonly head: number } | null;
  readonly read: number;
  readonly unread: number;
  readonly head: number;
  readonly originDevice: string | null;
}
export interface MessageHintRow {
  readonly resync: string | null;
  readonly conv: { readonly id: string } | null;
  readonly seq: number;
  readonly contentType: string;
}
export interface Live<Row> {
  /** The next item after the first resync. */
  next(withinMs?: number): Promise<Row>;
  until(fits: (row: Row) => boolean, withinMs?: number): Promise<Row>;
  readonly rows: readonly Row[];
  readonly socket: TestSocket;
}

const documents = {
  readChanged: `subscription { readChanged { resync conv { id read unread head } read unread head originDevice } }`,
  message: `subscription { message { resync conv { id } seq contentType } }`,
  hints: (conv: string) => `subscription { hints { __typename ... on Resync { reason }
    ... on MessageHint { ${conv} seq contentType } ... on ReadHint { ${conv} read } ... on ConvHint { ${conv} contentType } } }`,
};

export const listenToReads = (actor: Actor) => listen<ReadHintRow>(actor, 'readChanged', documents.readChanged);
export const listenToMessages = (actor: Actor) => listen<MessageHintRow>(actor, 'message', documents.message);
/** @param conv the selection of what each hint tells of its conversation */
export const listenToAll = (actor: Actor, conv = 'conv { id }') =>
  listen<Readonly<Record<string, unknown>>>(actor, 'hints', documents.hints(conv));

async function listen<Row>(actor: Actor, field: keyof typeof documents, document: string): Promise<Live<Row>> {
  const subscription = await actor.app.subscribe(actor.credential, document);
  await subscription.next(); // the resync: live from here on (H2)
  return rowsOf<Row>(subscription, subscription.socket, field);
}

function rowsOf<Row>(live: LiveSubscription, socket: TestSocket, field: string): Live<Row> {
  const row = (item: { readonly data?: unknown }) => (item.data as Record<string, unknown>)[field] as Row;
  return {
    next: async (withinMs) => row(await live.next(withinMs)),
    until: async (fits, withinMs) => row(await live.until((item) => fits(row(item)), withinMs)),
    get rows() {
      return live.all.map(row);
    },
    socket,
  };
}

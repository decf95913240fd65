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
  hints: `subscription { hints { __typename ... on Resync { reason } ... on MessageHint { conv { id } seq contentType }
    ... on ReadHint { conv { id } read } ... on ConvHint { conv { id } contentType } } }`,
};

export const listenToReads = (actor: Actor) => listen<ReadHintRow>(actor, 'readChanged');
export const listenToMessages = (actor: Actor) => listen<MessageHintRow>(actor, 'message');
export const listenToAll = (actor: Actor) => listen<Readonly<Record<string, unknown>>>(actor, 'hints');

async function listen<Row>(actor: Actor, field: keyof typeof documents): Promise<Live<Row>> {
  const subscription = await actor.app.subscribe(actor.credential, documents[field]);
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

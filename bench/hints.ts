// Ms from publish until the last of many sockets on one node has its frame, each socket a device of another user, against
// a bare `ws` broadcast of the same bytes. Server and clients share this process, in both cases.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { WebSocket, WebSocketServer } from 'ws';
import { createApp } from '../src/app.js';
import type { ConvId, MessageHint, UserId } from '../src/model.js';
import { testConfig } from '../test/support/app.js';
import { convId, credentialOf, loadLogs, memberOf } from './logs.js';
import { alternate, Findings, millisecondsOf, quantile, type Bench } from './measure.js';

const documents = {
  // what the hint itself says: no query
  facts: 'subscription { message { resync seq head conv { id head } } }',
  // one query for all sockets
  unread: 'subscription { message { resync seq head conv { id head unread } } }',
};

/** Clients, and what makes each of them get one frame. */
interface Room {
  readonly clients: readonly WebSocket[];
  readonly publish: () => void;
}

export const hints: Bench = async ({ sockets, messages, rounds }, server) => {
  const sizes = { convs: 2, messages, members: sockets + 1, users: 2 * sockets + 1 };
  await using postgres = await server.database('hints', 1);
  await loadLogs(postgres.pool, sizes);
  const config = testConfig(postgres.url, 'k'.repeat(43));
  await using app = await createApp(config, { log: pino({ level: 'silent' }) });
  const listeningTo = async (conv: number, document: string): Promise<Room> => {
    const users = Array.from({ length: sockets }, (_, i) => memberOf(sizes, conv, i + 1) as UserId);
    const clients = await Promise.all(users.map((user) => subscribe(app.url, credentialOf(user), document)));
    let seq = 2 * messages; // beyond the log: each hint says more than the one before
    return { clients, publish: () => app.deps.bus.publish(users, hintOf(conv, ++seq)) };
  };
  const facts = await listeningTo(0, documents.facts);
  const unread = await listeningTo(1, documents.unread);
  const frame = once(facts.clients[0] ?? nobody(), 'message');
  await untilLast(facts);
  await using bare = await startBroadcast(sockets, String((await frame)[0]));

  const measured = await alternate(rounds * 60, {
    'facts alone': () => untilLast(facts),
    'with unread': () => untilLast(unread),
    broadcast: () => untilLast(bare),
  });
  for (const client of [...facts.clients, ...unread.clients]) client.terminate();
  const found = new Findings();
  for (const [name, q] of [['p50', 0.5] as const, ['p99', 0.99] as const]) {
    const broadcast = quantile(measured.broadcast, q);
    found.row(`broadcast ${name}`, broadcast, 'ms');
    for (const ours of ['facts alone', 'with unread'] as const) {
      found.row(`${ours} ${name}`, quantile(measured[ours], q), 'ms');
      found.against(`${ours} ${name}`, 'broadcast', quantile(measured[ours], q), broadcast);
    }
  }
  return found;
};

const nobody = (): never => {
  throw new Error('there are no sockets');
};

function untilLast({ clients, publish }: Room): Promise<number> {
  let waiting = clients.length;
  const arrived = new Promise<void>((resolve) => {
    for (const client of clients) {
      client.once('message', () => {
        if (--waiting === 0) resolve();
      });
    }
  });
  return millisecondsOf(() => {
    publish();
    return arrived;
  });
}

function hintOf(conv: number, seq: number): MessageHint {
  const about = {
    kind: 'message',
    conv: convId(conv) as ConvId,
    conversationType: 'GROUP',
    originDevice: null,
    change: null,
  } as const;
  const event = { seq, head: seq, eventKind: 'MESSAGE', contentType: 'TEXT', target: null } as const;
  return { ...about, ...event, sender: 'ana' as UserId };
}

/** A socket whose subscription is live: its resync has come. */
async function subscribe(url: string, credential: string, query: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const says = async (text: string) => {
    const answer = String((await once(socket, 'message'))[0]);
    if (!answer.includes(text)) throw new Error(`the server says ${answer}`);
  };
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${credential}` } }));
  await says('connection_ack');
  socket.send(JSON.stringify({ id: 'a', type: 'subscribe', payload: { query } }));
  await says('START');
  return socket;
}

async function startBroadcast(sockets: number, frame: string): Promise<Room & AsyncDisposable> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = await Promise.all(
    Array.from({ length: sockets }, async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${String(port)}`);
      await once(socket, 'open');
      return socket;
    }),
  );
  return {
    clients,
    publish: () => {
      for (const socket of server.clients) socket.send(frame);
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.terminate();
      server.close();
      await once(server, 'close');
    },
  };
}

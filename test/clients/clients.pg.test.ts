// Real clients: Apollo Client and urql with Graphcache. Their normalized caches show the right badge with no code but the
// documents, and neither warns.
import { gql } from '@apollo/client/core';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { startWorld, type Actor, type World } from '../support/world.js';
import { connect as connectApollo } from './apollo.js';
import * as documents from './documents.js';
import { connect as connectUrql } from './urql.js';

interface Inbox {
  convs: { nodes: { id: string; head: number; read: number; unread: number }[] };
  badge: { id: string; unread: number };
}
/** What the app's screen shows now: kept up to date by the client's cache alone. */
interface Screen {
  readonly shown: () => { unread: number | undefined; badge: number | undefined };
  /** the client's own mutation, by its own documents */
  readonly act: (document: string, variables: Record<string, unknown>) => Promise<unknown>;
  readonly close: () => Promise<void>;
}
/** What the client under test has been told: the inbox queries that went over HTTP, the resyncs at the start of subscriptions. */
const inboxes = { asked: 0, answered: 0, starts: 0 };
class CountingSocket extends WebSocket {
  constructor(url: string, protocols?: string | string[]) {
    super(url, protocols);
    this.on('message', (data: Buffer) => {
      if (data.toString().includes('"START"')) inboxes.starts++;
    });
  }
}
const plainFetch = globalThis.fetch;
const countingFetch: typeof fetch = async (input, init) => {
  const isInbox = typeof init?.body === 'string' && init.body.includes('query Inbox');
  if (isInbox) inboxes.asked++;
  const response = await plainFetch(input, init);
  const body = await response.text();
  if (isInbox) setImmediate(() => inboxes.answered++);
  return new Response(body, response);
};
type Connect = (world: World, credential: string, conv: string) => Promise<Screen>;

const apollo: Connect = async (world, credential, conv) => {
  const { client, close } = connectApollo(`${world.app.url}/graphql`, credential);
  let data: Inbox | undefined;
  const watched = client.watchQuery<Inbox>({ query: gql(documents.inbox) }).subscribe((result) => {
    data = result.dataState === 'complete' ? result.data : data;
  });
  // The hints are live, and what was asked for at their resync has been answered: an older answer must not come after a hint.
  const isSettled = () => inboxes.starts > 0 && inboxes.asked === inboxes.answered;
  await vi.waitUntil(() => data !== undefined && isSettled(), 20_000);
  return {
    shown: () => ({ unread: data?.convs.nodes.find(({ id }) => id === conv)?.unread, badge: data?.badge.unread }),
    act: (document, variables) => client.mutate({ mutation: gql(document), variables }),
    close: async () => {
      watched.unsubscribe();
      await close();
    },
  };
};

const urql: Connect = async (world, credential, conv) => {
  let data: Inbox | undefined;
  const resyncs = { asked: 0, answered: 0 };
  const askAgain = () => {
    resyncs.asked++;
    void client
      .query(documents.inbox, {}, { requestPolicy: 'network-only' })
      .toPromise()
      .then(() => resyncs.answered++);
  };
  const { client, close } = connectUrql(`${world.app.url}/graphql`, credential, askAgain);
  const watched = client.query<Inbox>(documents.inbox, {}).subscribe((result) => (data = result.data ?? data));
  // of message and of readChanged: an answer from before a hint must not come after it
  const isSettled = () => resyncs.asked === 2 && resyncs.answered === 2 && inboxes.asked === inboxes.answered;
  await vi.waitUntil(() => data !== undefined && isSettled(), 20_000);
  return {
    shown: () => ({ unread: data?.convs.nodes.find(({ id }) => id === conv)?.unread, badge: data?.badge.unread }),
    act: (document, variables) => client.mutation(document, variables).toPromise(),
    close: async () => {
      watched.unsubscribe();
      await close();
    },
  };
};

let world: World;
let ana: Actor;
beforeAll(async () => {
  // browsers and newer Nodes have one
  vi.stubGlobal('WebSocket', CountingSocket);
  vi.stubGlobal('fetch', countingFetch);
  world = await startWorld();
  ana = await world.device('ana');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  vi.unstubAllGlobals();
});

const spied = (['warn', 'error'] as const).map((level) => ({ level, calls: [] as unknown[][] }));
beforeEach(() => {
  for (const { level, calls } of spied) {
    calls.length = 0;
    vi.spyOn(console, level).mockImplementation((...args) => void calls.push(args));
  }
});
afterEach(() => {
  vi.restoreAllMocks();
});

test.each<[string, Connect]>([
  ['apollo', apollo],
  ['urql', urql],
])(
  '[R4] [H9] the %s client: the badge follows what the user’s other device does, and nothing is warned',
  async (name, connect) => {
    await world.users(name);
    inboxes.asked = inboxes.answered = inboxes.starts = 0;
    const [phone, laptop] = [await world.device(name), await world.device(name)];
    const { id } = (await ana.createConv({ members: [name] })).conv;
    await ana.send(id, 'first');
    const screen = await connect(world, laptop.credential, id);
    try {
      expect(screen.shown()).toEqual({ unread: 1, badge: 1 });
      await ana.send(id, 'second');
      await expect.poll(screen.shown, { timeout: 10_000 }).toEqual({ unread: 2, badge: 2 });
      await phone.markRead(id, 4);
      await expect.poll(screen.shown, { timeout: 10_000 }).toEqual({ unread: 0, badge: 0 });
      await ana.send(id, 'third');
      await expect.poll(screen.shown, { timeout: 10_000 }).toEqual({ unread: 1, badge: 1 });
      await screen.act(documents.markRead, { conv: id, seq: 5 });
      expect(screen.shown()).toEqual({ unread: 0, badge: 0 });
      const input = { conv: id, clientId: `from ${name}`, contentType: 'TEXT', content: { text: 'mine' } };
      await screen.act(documents.send, { input });
      expect((await ana.conv(id)).unread).toBe(1);
      expect(screen.shown()).toEqual({ unread: 0, badge: 0 });
    } finally {
      await screen.close();
    }
    expect(spied.flatMap(({ calls }) => calls)).toEqual([]);
  },
);

test.each(['apollo', 'urql'])('the README shows the very code of the %s client that is tested here', async (name) => {
  const [readme, code] = await Promise.all([
    readFile('README.md', 'utf8'),
    readFile(new URL(`${name}.ts`, import.meta.url), 'utf8'),
  ]);
  expect(readme).toContain(`\`\`\`ts\n${code}\`\`\``);
});

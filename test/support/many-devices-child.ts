// The clients of many-devices.ts: graphql-ws as README shows it, and a query over HTTP that is repeated while it may be.
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Seen } from './many-devices.js';

const counts = { closes: {} as Record<string, number>, statuses: {} as Record<string, number> };
const fatal: string[] = [];
const add = (to: Record<string, number>, key: unknown) => (to[String(key)] = (to[String(key)] ?? 0) + 1);
const agent = new http.Agent({ keepAlive: true });

interface Answer {
  readonly data?: { readonly convs: { readonly nodes: readonly { readonly head: number }[] } } | null;
  readonly errors?: readonly { readonly extensions: { readonly code: string; readonly retryable: boolean } }[];
}

function post(url: string, credential: string, query: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${credential}` };
    const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text });
      });
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(JSON.stringify({ query }));
  });
}

class Device {
  isLive = false;
  head: number | null = null;
  hint = 0;
  #asked = 0;
  readonly #url: string;
  readonly #credential: string;

  constructor(url: string, credential: string) {
    this.#url = url;
    this.#credential = credential;
    const client = createClient({
      url: url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${credential}` },
      retryAttempts: Infinity,
      shouldRetry: () => true,
      on: {
        closed: (event) => {
          this.isLive = false;
          add(counts.closes, (event as { code: number }).code);
        },
      },
    });
    const query = 'subscription { message { resync seq } }';
    client.subscribe<{ message: { resync: string | null; seq: number | null } }>(
      { query },
      {
        next: ({ data, errors }) => {
          if (errors) fatal.push(JSON.stringify(errors));
          else if (data?.message.resync) void this.#ask();
          else this.hint = Math.max(this.hint, data?.message.seq ?? 0);
        },
        error: (error) => fatal.push(error instanceof Error ? error.message : JSON.stringify(error)),
        complete: () => fatal.push('completed'),
      },
    );
  }

  /** The cheap first query after a reconnect, again until it is answered. */
  async #ask(): Promise<void> {
    const turn = ++this.#asked;
    this.isLive = true;
    this.head = null;
    this.hint = 0;
    while (turn === this.#asked) {
      const { head, isFinal } = await this.#tryToAsk();
      if (turn === this.#asked) this.head = head;
      if (isFinal) return;
      await pause(500 + Math.random() * 1_000);
    }
  }

  async #tryToAsk(): Promise<{ head: number | null; isFinal: boolean }> {
    const query = '{ convs(lagging: true) { nodes { id head read unread } } }';
    try {
      const { status, text } = await post(this.#url, this.#credential, query);
      add(counts.statuses, status);
      if (status === 503) return { head: null, isFinal: false };
      const { data, errors } = JSON.parse(text) as Answer;
      if (errors?.every(({ extensions }) => extensions.retryable)) {
        add(counts.statuses, errors[0]?.extensions.code);
        return { head: null, isFinal: false };
      }
      if (errors || !data) fatal.push(text);
      return { head: Math.max(0, ...(data?.convs.nodes ?? []).map(({ head }) => head)), isFinal: true };
    } catch (error) {
      add(counts.statuses, (error as NodeJS.ErrnoException).code);
      return { head: null, isFinal: false };
    }
  }
}

const devices: Device[] = [];

function tell(): void {
  const live = devices.filter(({ isLive }) => isLive);
  const [byHead, byHint]: [Record<string, number>, Record<string, number>] = [{}, {}];
  for (const { head, hint } of live) {
    if (head !== null) add(byHead, head);
    if (hint > 0) add(byHint, hint);
  }
  process.send?.({ live: live.length, byHead, byHint, ...counts, fatal: fatal.slice(0, 5) } satisfies Seen);
}

process.on('disconnect', () => process.exit());
process.once('message', (told) => {
  const { url, credentials } = told as { url: string; credentials: string[] };
  for (const credential of credentials) devices.push(new Device(url, credential));
  setInterval(tell, 100);
});

// One subscription over server-sent events, read from a plain response.
import type { GraphQLAnswer } from './app.js';
import { Items } from './live-items.js';

export interface EventStream {
  readonly response: Response;
  next(withinMs?: number): Promise<GraphQLAnswer>;
  until(fits: (item: GraphQLAnswer) => boolean, withinMs?: number): Promise<GraphQLAnswer>;
  readonly all: readonly GraphQLAnswer[];
  /** how the stream ended: by its own `complete` event, or cut off */
  readonly ended: Promise<'complete' | 'cut'>;
  close(): void;
}

export async function openEventStream(
  url: string,
  credential: string | null,
  body: Readonly<Record<string, unknown>>,
): Promise<EventStream> {
  const abort = new AbortController();
  const response = await fetch(url, {
    method: 'POST',
    signal: abort.signal,
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
    },
    body: JSON.stringify(body),
  });
  const items = new Items<GraphQLAnswer>();
  return {
    response,
    all: items.all,
    next: (withinMs) => items.next(withinMs),
    until: (fits, withinMs) => items.until(fits, withinMs),
    ended: pump(response, items),
    close: () => {
      abort.abort();
    },
  };
}

async function pump(response: Response, items: Items<GraphQLAnswer>): Promise<'complete' | 'cut'> {
  let text = '';
  let end: 'complete' | 'cut' = 'cut';
  try {
    const decoder = new TextDecoder();
    const chunks = (response.body ?? []) as unknown as AsyncIterable<Uint8Array>;
    for await (const chunk of chunks) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        if (block.includes('event: complete')) end = 'complete';
        const data = /^data: (.+)$/mu.exec(block)?.[1];
        if (data !== undefined) items.put(JSON.parse(data) as GraphQLAnswer);
      }
    }
  } catch {
    // the connection was cut
  }
  items.end(new Error('the stream has ended'));
  return end;
}

import { Client, fetchExchange, gql, subscriptionExchange } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { createClient, type Sink } from 'graphql-ws';

const embedded = () => null; // these have no id of their own

/** `askAgain` refetches what is shown: hints may have been lost. */
export function connect(url: string, credential: string, askAgain: () => void) {
  const authorization = `Bearer ${credential}`;
  let silence: ReturnType<typeof setTimeout> | undefined;
  const socket = createClient({
    url: url.replace(/^http/, 'ws'),
    connectionParams: { authorization },
    retryAttempts: Infinity,
    shouldRetry: () => true,
    keepAlive: 10_000,
    on: {
      // A network that is gone says nothing: a ping without an answer within 5 s, and the socket is made anew.
      ping: (received) => {
        if (!received) silence = setTimeout(() => socket.terminate(), 5_000);
      },
      pong: (received) => {
        if (received) clearTimeout(silence);
      },
    },
  });
  const client = new Client({
    url,
    fetchOptions: { headers: { authorization } },
    preferGetMethod: false,
    exchanges: [
      cacheExchange({
        keys: {
          ConvConnection: embedded,
          ConvEdge: embedded,
          PageInfo: embedded,
          MessageHint: embedded,
          ReadHint: embedded,
          ReadState: embedded,
          SendPayload: embedded,
        },
      }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: (request) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ ...request, query: request.query ?? '' }, sink as Sink),
          }),
        }),
      }),
    ],
  });

  // Each hint writes Conv:<id> and Badge:<id> into the cache: what shows them is up to date without more code.
  const subscriptions = [
    gql`
      subscription {
        message {
          resync
          conv {
            id
            head
            unread
          }
        }
      }
    `,
    gql`
      subscription {
        readChanged {
          resync
          conv {
            id
            head
            read
            unread
          }
        }
      }
    `,
    gql`
      subscription {
        badgeChanged {
          id
          unread
          mutedUnread
          convs
        }
      }
    `,
  ].map((query) =>
    client.subscription<Record<string, { resync?: string }>>(query, {}).subscribe(({ data, error }) => {
      // a 4401 is final: sign in again. Any other: a hint could not be told whole.
      if (error) console.error(error.message);
      if (error || Object.values(data ?? {}).some(({ resync }) => resync)) askAgain();
    }),
  );

  return {
    client,
    async close() {
      for (const { unsubscribe } of subscriptions) unsubscribe();
      await socket.dispose();
    },
  };
}

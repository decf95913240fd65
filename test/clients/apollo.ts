import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client/core';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';

export function connect(url: string, credential: string) {
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
  const client = new ApolloClient({
    cache: new InMemoryCache({
      possibleTypes: { Hint: ['Resync', 'MessageHint', 'ReadHint', 'ConvHint'] },
      // a hint replaces the one before it
      typePolicies: { Subscription: { fields: { hints: { merge: (_, incoming) => incoming } } } },
    }),
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(socket),
      new HttpLink({ uri: url, headers: { authorization } }),
    ),
  });

  // Each hint writes Conv:<id> and Badge:<id> into the cache: what shows them is up to date without more code.
  // A resync says that hints may have been lost: ask again for whatever is shown.
  const hints = client
    .subscribe<{ hints: { reason?: string } }>({
      query: gql`
        subscription {
          hints {
            ... on Resync {
              reason
            }
            ... on MessageHint {
              conv {
                id
                head
                unread
              }
            }
            ... on ReadHint {
              conv {
                id
                head
                read
                unread
              }
            }
            ... on ConvHint {
              conv {
                id
                title
                muted
                joined
              }
            }
          }
        }
      `,
    })
    .subscribe(({ data, error }) => {
      // a 4401 is final: sign in again. Any other: a hint could not be told whole.
      if (error) console.error(error.message);
      if (error || data?.hints.reason) void client.refetchQueries({ include: 'active' });
    });
  const badge = client
    .subscribe({
      query: gql`
        subscription {
          badgeChanged {
            id
            unread
            mutedUnread
            convs
          }
        }
      `,
    })
    .subscribe(() => undefined);

  return {
    client,
    async close() {
      hints.unsubscribe();
      badge.unsubscribe();
      client.stop();
      await socket.dispose();
    },
  };
}

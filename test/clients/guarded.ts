// Apollo Client with the guard that keeps an older answer from overwriting a newer hint: a link in front of the cache.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client/core';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';
import { map } from 'rxjs';
import { Newest, type Marks } from '../support/newest.js';

export interface ConvNumbers extends Marks {
  readonly id: string;
  readonly unread: number;
}

const numbers = 'conv { id head read unread }';
const hints = gql`subscription { hints { ... on Resync { reason } ... on MessageHint { ${numbers} } ... on ReadHint { ${numbers} } } }`;
const conv = gql`
  query Conv($id: ID!) {
    conv(id: $id) {
      id
      head
      read
      unread
    }
  }
`;

export interface GuardedOptions {
  /** the service, as HTTP and as WebSocket find it */
  readonly http: string;
  readonly socket: string;
  readonly credential: string;
}

export function connectGuarded({ http, socket: socketUrl, credential }: GuardedOptions) {
  const authorization = `Bearer ${credential}`;
  const socket = createClient({
    url: `${socketUrl.replace(/^http/u, 'ws')}/graphql`,
    connectionParams: { authorization },
    retryAttempts: Infinity,
    shouldRetry: () => true,
  });
  const newest = new Newest<ConvNumbers>();
  const told = { older: 0, unlike: 0, resyncs: 0 };
  const guard = new ApolloLink((operation, forward) =>
    forward(operation).pipe(
      map((result) => (result.data ? { ...result, data: sift(result.data) as typeof result.data } : result)),
    ),
  );

  /** The answer with whatever is older than what is known replaced by that. */
  function sift(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(sift);
    if (typeof value !== 'object' || value === null) return value;
    const sifted = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, sift(inner)]));
    return isConv(sifted) ? { ...sifted, ...newestOf(sifted) } : sifted;
  }

  function newestOf({ id, head, read, unread }: ConvNumbers): ConvNumbers {
    const seen = { id, head, read, unread };
    const age = newest.take(id, seen);
    if (age !== 'newer') told[age]++;
    if (age === 'unlike') void client.query({ query: conv, variables: { id }, fetchPolicy: 'network-only' });
    return newest.get(id) ?? seen;
  }

  const client = new ApolloClient({
    cache: new InMemoryCache({
      possibleTypes: { Hint: ['Resync', 'MessageHint', 'ReadHint', 'ConvHint'] },
      typePolicies: { Subscription: { fields: { hints: { merge: (_, incoming) => incoming } } } },
    }),
    link: ApolloLink.from([
      guard,
      ApolloLink.split(
        ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
        new GraphQLWsLink(socket),
        new HttpLink({ uri: `${http}/graphql`, headers: { authorization } }),
      ),
    ]),
  });
  const subscription = client.subscribe<{ hints: { reason?: string } }>({ query: hints }).subscribe(({ data }) => {
    if (data?.hints.reason) told.resyncs++;
  });
  return {
    client,
    told,
    shown: (id: string) =>
      client.cache.readFragment<ConvNumbers>({
        id: `Conv:${id}`,
        fragment: gql`
          fragment Numbers on Conv {
            id
            head
            read
            unread
          }
        `,
      }),
    close: async () => {
      subscription.unsubscribe();
      client.stop();
      await socket.dispose();
    },
  };
}

const isConv = (value: object): value is ConvNumbers =>
  '__typename' in value && value.__typename === 'Conv' && 'head' in value && 'read' in value && 'unread' in value;

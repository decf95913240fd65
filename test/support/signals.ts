// Signals as clients see them.
import type { Live } from './live-hints.js';
import type { Actor } from './world.js';

export interface SignalRow {
  readonly conversationType: string;
  readonly contentType: string;
  readonly conv: { readonly id: string; readonly unread: number } | null;
  readonly sender: { readonly id: string; readonly name: string | null } | null;
  readonly originDevice: string | null;
  readonly content: unknown;
}

const document = `subscription { hints { __typename ... on Signal { conversationType contentType conv { id unread } sender { id name }
  originDevice sentAt content } } }`;

export async function listenToSignals(actor: Actor): Promise<Pick<Live<SignalRow>, 'next'>> {
  const live = await actor.app.subscribe(actor.credential, document);
  await live.next();
  type Item = { readonly data?: unknown };
  const row = (item: Item) => (item.data as { hints: SignalRow & { __typename: string } }).hints;
  return { next: async (withinMs) => row(await live.until((item) => row(item).__typename === 'Signal', withinMs)) };
}

export async function signal(
  actor: Actor,
  conv: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const mutation = `mutation ($conv: ID!, $contentType: SignalType!, $content: JSON, $to: [ID!]) {
    signal(conv: $conv, contentType: $contentType, content: $content, to: $to) { users } }`;
  const variables = { conv, contentType: 'TYPING', ...more };
  return (await actor.ask<{ signal: { users: number } }>(mutation, variables)).signal.users;
}

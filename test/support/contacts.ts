// Contacts as clients ask for them.
import type { Live } from './live-hints.js';
import type { Actor } from './world.js';

export interface ContactRow {
  readonly id: string;
  readonly active: boolean;
  readonly remark: string | null;
  readonly muted: boolean;
  readonly pinned: boolean;
  readonly blocked: boolean;
}
export interface RequestRow {
  readonly from: { readonly id: string };
  readonly to: { readonly id: string };
  readonly state: string;
  readonly text: string | null;
  readonly handledAt: string | null;
}
export interface ContactPayload {
  readonly contact: ContactRow | null;
  readonly request: RequestRow | null;
}
export interface ChangeHintRow {
  readonly contentType: string;
  readonly originDevice: string | null;
  readonly change: { readonly contact?: ContactRow; readonly contactRequest?: RequestRow };
}

export const contactFields = `id active remark muted pinned blocked`;
export const requestFields = `from { id } to { id } state text handledAt`;
const payload = `{ contact { ${contactFields} } request { ${requestFields} } }`;

type Verb =
  | 'requestContact'
  | 'acceptContact'
  | 'refuseContact'
  | 'withdrawContact'
  | 'deleteContact'
  | 'blockContact'
  | 'unblockContact';

/** Any of the mutations that name a user and nothing else. */
export async function act(actor: Actor, verb: Verb, user: string): Promise<ContactPayload> {
  const document = `mutation ($user: ID!) { ${verb}(user: $user) ${payload} }`;
  return (await actor.ask<Record<Verb, ContactPayload>>(document, { user }))[verb];
}

export async function ask(actor: Actor, user: string, text: string | null = null): Promise<ContactPayload> {
  const document = `mutation ($user: ID!, $text: String) { requestContact(user: $user, text: $text) ${payload} }`;
  return (await actor.ask<{ requestContact: ContactPayload }>(document, { user, text })).requestContact;
}

export async function update(actor: Actor, user: string, settings: Readonly<Record<string, unknown>>) {
  const document = `mutation ($user: ID!, $remark: String, $muted: Boolean, $pinned: Boolean) {
    updateContact(user: $user, remark: $remark, muted: $muted, pinned: $pinned) ${payload} }`;
  return (await actor.ask<{ updateContact: ContactPayload }>(document, { user, ...settings })).updateContact;
}

export async function contactsOf(actor: Actor, blocked = false): Promise<readonly ContactRow[]> {
  const document = `query ($blocked: Boolean) { contacts(blocked: $blocked, first: 200) { nodes { ${contactFields} } } }`;
  return (await actor.ask<{ contacts: { nodes: ContactRow[] } }>(document, { blocked })).contacts.nodes;
}

export async function requestsOf(
  actor: Actor,
  args: Readonly<Record<string, unknown>> = {},
): Promise<readonly RequestRow[]> {
  const document = `query ($sent: Boolean, $state: RequestState) {
    contactRequests(sent: $sent, state: $state, first: 200) { nodes { ${requestFields} } } }`;
  return (await actor.ask<{ contactRequests: { nodes: RequestRow[] } }>(document, args)).contactRequests.nodes;
}

export async function befriend(a: Actor, b: Actor, [idOfA, idOfB]: readonly [string, string]): Promise<void> {
  await ask(a, idOfB);
  await act(b, 'acceptContact', idOfA);
}

/** The hints about contacts alone. */
export async function listenToChanges(actor: Actor): Promise<Pick<Live<ChangeHintRow>, 'next' | 'until'>> {
  const document = `subscription { hints { __typename ... on ChangeHint { contentType originDevice change {
    ... on ContactChange { contact { ${contactFields} } }
    ... on ContactRequestChange { contactRequest { ${requestFields} } } } } } }`;
  const live = await actor.app.subscribe(actor.credential, document);
  await live.next();
  type Item = { readonly data?: unknown };
  const row = (item: Item) => (item.data as { hints: ChangeHintRow & { __typename: string } }).hints;
  const isChange = (item: Item) => row(item).__typename === 'ChangeHint';
  return {
    next: async (withinMs) => row(await live.until(isChange, withinMs)),
    until: async (fits, withinMs) => row(await live.until((item) => isChange(item) && fits(row(item)), withinMs)),
  };
}

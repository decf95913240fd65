// What is done to groups, as clients ask for it.
import type { Actor } from './world.js';

const conv =
  'conv { id title head joined myRole infoVersion notice avatarUrl allMuted banned silencedUntil nickname pins { seq recalled content } }';
const request = 'request { conv user { id } inviter { id } state text handledAt }';

const verbs = {
  updateConv: ['$input: UpdateConvInput!', 'input: $input', conv],
  setRole: ['$conv: ID!, $user: ID!, $role: Role!', 'conv: $conv, user: $user, role: $role', conv],
  transferConv: ['$conv: ID!, $user: ID!', 'conv: $conv, user: $user', conv],
  dissolveConv: ['$conv: ID!', 'conv: $conv', conv],
  banConv: ['$conv: ID!, $banned: Boolean!', 'conv: $conv, banned: $banned', 'conv { id banned }'],
  muteAll: ['$conv: ID!, $muted: Boolean!', 'conv: $conv, muted: $muted', conv],
  muteMember: ['$conv: ID!, $user: ID!, $until: DateTime', 'conv: $conv, user: $user, until: $until', conv],
  unmuteMember: ['$conv: ID!, $user: ID!', 'conv: $conv, user: $user', conv],
  pinEvent: ['$conv: ID!, $seq: Seq!', 'conv: $conv, seq: $seq', conv],
  unpinEvent: ['$conv: ID!, $seq: Seq!', 'conv: $conv, seq: $seq', conv],
  setNickname: ['$conv: ID!, $nickname: String', 'conv: $conv, nickname: $nickname', conv],
  requestJoin: ['$conv: ID!, $text: String', 'conv: $conv, text: $text', request],
  approveJoin: ['$conv: ID!, $user: ID!', 'conv: $conv, user: $user', request],
  refuseJoin: ['$conv: ID!, $user: ID!', 'conv: $conv, user: $user', request],
} as const;
export type GroupVerb = keyof typeof verbs;

export interface GroupRow {
  readonly id: string;
  readonly title: string | null;
  readonly head: number;
  readonly joined: boolean;
  readonly myRole: string | null;
  readonly infoVersion: number;
  readonly notice: string | null;
  readonly avatarUrl: string | null;
  readonly allMuted: boolean;
  readonly silencedUntil: string | null;
  readonly nickname: string | null;
  readonly pins: readonly { readonly seq: number; readonly recalled: boolean; readonly content: unknown }[];
}
export interface JoinRequestRow {
  readonly conv: string;
  readonly user: { readonly id: string };
  readonly inviter: { readonly id: string } | null;
  readonly state: string;
  readonly text: string | null;
}

/** The service key by itself sees no pins and no request. */
export async function group(
  actor: Actor,
  verb: GroupVerb,
  variables: Readonly<Record<string, unknown>>,
): Promise<{ readonly conv: GroupRow; readonly request: JoinRequestRow | null }> {
  const [declared, passed, selected] = verbs[verb];
  const byItself = actor.credential === actor.app.serviceKey && !('x-tidemark-user' in actor.headers);
  const fields = byItself && selected === conv ? 'conv { id }' : selected;
  const document = `mutation (${declared}) { ${verb}(${passed}) { ${fields} } }`;
  const answer = await actor.ask<Record<string, { conv: GroupRow; request: JoinRequestRow | null }>>(
    document,
    variables,
  );
  return answer[verb] as { conv: GroupRow; request: JoinRequestRow | null };
}

export async function groupOf(actor: Actor, id: string): Promise<GroupRow> {
  return (
    await actor.ask<{ conv: GroupRow }>(`query ($id: ID!) { ${conv.replace('conv {', 'conv(id: $id) {')} }`, { id })
  ).conv;
}

export async function joinRequestsOf(
  actor: Actor,
  args: Readonly<Record<string, unknown>> = {},
): Promise<readonly JoinRequestRow[]> {
  const document = `query ($conv: ID, $state: RequestState) {
    joinRequests(conv: $conv, state: $state, first: 200) { nodes { conv user { id } inviter { id } state text handledAt } } }`;
  return (await actor.ask<{ joinRequests: { nodes: JoinRequestRow[] } }>(document, args)).joinRequests.nodes;
}

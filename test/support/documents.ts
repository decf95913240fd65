// The documents that test clients send.
const eventFields = `
  id seq kind contentType sender { id } clientId recalled recalledBy via content text mentions
  target { seq recalled content } quote { seq contentType sender { id } content }`;
const convFields = `id type title epoch head minSeq delivered read unread joined muted myRole`;
const badgeFields = `id unread mutedUnread convs asOf`;

export const upsertUser = `mutation ($input: UpsertUserInput!) { upsertUser(input: $input) { user { id name avatarUrl } } }`;
export const registerDevice = `mutation ($input: RegisterDeviceInput!) {
  registerDevice(input: $input) { credential device { id name installEpoch lastSeenAt } } }`;
export const reinstall = `mutation ($installId: String!) { reinstall(installId: $installId) { credential device { id installEpoch } } }`;
export const revokeDevice = `mutation ($deviceId: ID!) { revokeDevice(deviceId: $deviceId) { credential device { id } } }`;

export const createConv = `mutation ($input: CreateConvInput!) { createConv(input: $input) { duplicate conv { ${convFields} } } }`;
export const addMembers = `mutation ($conv: ID!, $users: [ID!]!) { addMembers(conv: $conv, users: $users) { conv { ${convFields} } } }`;
export const removeMember = `mutation ($conv: ID!, $user: ID!) { removeMember(conv: $conv, user: $user) { conv { ${convFields} } } }`;
export const join = `mutation ($conv: ID!) { join(conv: $conv) { conv { ${convFields} } } }`;
export const leave = `mutation ($conv: ID!) { leave(conv: $conv) { conv { ${convFields} } } }`;
export const setConvSettings = `mutation ($conv: ID!, $muted: Boolean!) { setConvSettings(conv: $conv, muted: $muted) { conv { ${convFields} } } }`;

export const send = `mutation ($input: SendInput!) {
  send(input: $input) { duplicate event { ${eventFields} } conv { ${convFields} } badge { ${badgeFields} } } }`;
export const recall = `mutation ($conv: ID!, $seq: Seq!) {
  recall(conv: $conv, seq: $seq) { event { ${eventFields} } target { ${eventFields} } conv { ${convFields} } badge { ${badgeFields} } } }`;
export const markRead = `mutation ($conv: ID!, $seq: Seq!) {
  markRead(conv: $conv, seq: $seq) { read unread head conv { ${convFields} } badge { ${badgeFields} } } }`;
export const ack = `mutation ($conv: ID!, $seq: Seq!) { ack(conv: $conv, seq: $seq) { delivered head conv { ${convFields} } } }`;

const readItems = `items { conv { ${convFields} } read unread head error { code message } }`;
export const markReadMany = `mutation ($items: [Position!]!) { markReadMany(items: $items) { ${readItems} badge { ${badgeFields} } } }`;
export const markAllRead = `mutation ($asOf: String!) { markAllRead(asOf: $asOf) { complete ${readItems} badge { ${badgeFields} } } }`;
export const ackMany = `mutation ($items: [Position!]!) {
  ackMany(items: $items) { items { conv { ${convFields} } delivered head error { code message } } } }`;

export const badge = `{ badge { ${badgeFields} } }`;
export const convs = `query ($first: Int, $after: String, $orderBy: ConvOrder, $unreadOnly: Boolean, $lagging: Boolean, $includeLeft: Boolean) {
  convs(first: $first, after: $after, orderBy: $orderBy, unreadOnly: $unreadOnly, lagging: $lagging, includeLeft: $includeLeft) {
    asOf nodes { ${convFields} lastEvent { ${eventFields} } } pageInfo { hasNextPage hasPreviousPage endCursor } } }`;
export const sync = `query ($from: [SyncFrom!]!, $budget: Int) {
  sync(from: $from, budget: $budget) {
    complete items { conv { ${convFields} } events { ${eventFields} } through head hasMore reset { reason start } error { code message } } } }`;
export const history = `query ($conv: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  history(conv: $conv, first: $first, after: $after, last: $last, before: $before) {
    nodes { ${eventFields} } pageInfo { hasPreviousPage hasNextPage startCursor endCursor } } }`;
const changePage = `cursor hasMore reset items { __typename ... on ConvChange { conv { ${convFields} } } }`;
export const changes = `query ($after: String, $first: Int) { changes(after: $after, first: $first) { ${changePage} } }`;
export const unreadAudit = `query ($conv: ID!, $user: ID, $after: Seq, $first: Int) {
  unreadAudit(conv: $conv, user: $user, after: $after, first: $first) { unread seqs head read hasMore } }`;
export const conv = `query ($id: ID!) { conv(id: $id) { ${convFields} } }`;
/** All that a device shows, in one request. */
export const look = `query ($conv: ID!, $audit: Boolean!) {
  convs(first: 50, orderBy: ID, includeLeft: true) { nodes { ${convFields} } }
  badge { ${badgeFields} }
  unreadAudit(conv: $conv, first: 1000) @include(if: $audit) { unread seqs head read hasMore } }`;

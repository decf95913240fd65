// What an app writes: a query and two mutations; the normalized cache and the hints do the rest.
export const inbox = `query Inbox {
  convs { nodes { id head read unread } }
  badge { id unread }
}`;
export const send = `mutation Send($input: SendInput!) {
  send(input: $input) { event { id seq text } conv { id head read unread } badge { id unread } }
}`;
export const markRead = `mutation MarkRead($conv: ID!, $seq: Seq!) {
  markRead(conv: $conv, seq: $seq) { conv { id head read unread } badge { id unread } }
}`;

// Signals: typing, calls, and what the service has to say to everybody at once.
import type { SignalType } from '../domain/content-types.js';
import { toLook } from '../domain/access.js';
import type { SignalItem } from '../domain/hints.js';
import { broadcast, signal, type SignalAnswer } from '../domain/signals.js';
import type { JsonObject } from '../model.js';
import { builder } from './builder.js';
import { viewerOf } from './context.js';
import { conv } from './conversations.js';
import { addHintFields } from './hint-fields.js';
import { selectsOnly } from './selection.js';
import { user } from './users.js';

export const signalHint = builder.objectRef<SignalItem>('Signal').implement({
  description:
    'Something of this moment, told once to the devices that are online and kept nowhere. One that is more than 10 s late is dropped, and so are the oldest of more than 32 that a slow client has not read.',
  fields: (t) => ({
    conv: t.field({
      type: conv,
      nullable: true,
      description: 'null of a BROADCAST, and of a conversation that the viewer has left meanwhile',
      resolve: ({ hint }, _, { connection, deps }, info) => {
        if (!connection || hint.conv === null) return null;
        if (selectsOnly(info, ['id'])) return { id: hint.conv } as never;
        return deps.loads.conv({ ...toLook(connection.viewer), conv: hint.conv });
      },
    }),
    sender: t.field({
      type: user,
      nullable: true,
      description: 'null: the service',
      resolve: ({ hint: { sender } }, _, { deps }) => (sender === null ? null : deps.loads.user(sender)),
    }),
    sentAt: t.field({ type: 'DateTime', resolve: ({ hint }) => new Date(hint.sentAt) }),
    content: t.field({ type: 'JSON', nullable: true, resolve: ({ hint }) => hint.content }),
  }),
});
addHintFields(signalHint);

const signalType = builder.enumType('SignalType', {
  values: {
    TYPING: { description: 'the sender is writing; no content. Send it every few seconds while it is true' },
    CALL: { description: 'call signalling: whatever object the clients agree on, at most 8 KiB' },
  } satisfies Record<SignalType, object>,
});

const signalPayload = builder.objectRef<SignalAnswer>('SignalPayload').implement({
  fields: (t) => ({
    users: t.exposeInt('users', {
      description: 'how many are told; whether any device of theirs is online, nobody knows',
    }),
  }),
});
const broadcastPayload = builder.objectRef<{ readonly content: JsonObject }>('BroadcastPayload').implement({
  fields: (t) => ({ content: t.field({ type: 'JSON', resolve: ({ content }) => content }) }),
});

builder.mutationFields((t) => ({
  signal: t.field({
    type: signalPayload,
    nullable: true,
    description:
      'To all devices of the members that are online, the sender’s other ones included; it is not stored. NOT_MEMBER, BLOCKED by the other user of a DIRECT conversation, RATE_LIMITED (10 a second, 30 at once).',
    args: {
      conv: t.arg.id({ required: true }),
      contentType: t.arg({ type: signalType, required: true }),
      content: t.arg({ type: 'JSON', description: 'of a CALL' }),
      to: t.arg.idList({ description: 'only these members, at most 16; required in PULL mode' }),
    },
    resolve: (_, args, context) => signal(context.deps, viewerOf(context), args),
  }),
  broadcast: t.field({
    type: broadcastPayload,
    nullable: true,
    description: 'A BROADCAST to every device that is online, on every node; it is not stored. Service key only.',
    args: { content: t.arg({ type: 'JSON', required: true, description: 'an object of at most 8 KiB' }) },
    resolve: (_, args, context) => ({ content: broadcast(context.deps, viewerOf(context), args) }),
  }),
}));

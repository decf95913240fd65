// Acknowledging what a device holds.
import { ack, type AckAnswer } from '../domain/delivery.js';
import { builder } from './builder.js';
import { viewerOf } from './context.js';
import { conv, convOf } from './conversations.js';

const deliveryState = builder.objectRef<AckAnswer>('DeliveryState').implement({
  description: 'The merged delivery cursor of this device.',
  fields: (t) => ({
    conv: t.field({ type: conv, resolve: (answer, _, context) => convOf(answer, context) }),
    delivered: t.expose('delivered', { type: 'Seq' }),
    head: t.expose('head', { type: 'Seq' }),
  }),
});

builder.mutationField('ack', (t) =>
  t.field({
    type: deliveryState,
    nullable: true,
    description:
      'This device durably holds everything visible up to seq. Merged by maximum within the install; reads nothing. CURSOR_AHEAD above head (a former member is lowered instead). Devices only.',
    args: { conv: t.arg.id({ required: true }), seq: t.arg({ type: 'Seq', required: true }) },
    resolve: (_, args, context) => ack(context.deps, viewerOf(context), args),
  }),
);

// What every hint that is no item of a log says of itself (H10).
import type { ObjectRef } from '@pothos/core';
import type { ContentTypeName } from '../domain/content-types.js';
import type { ChangeItem, SignalItem } from '../domain/hints.js';
import { builder, type SchemaTypes } from './builder.js';
import { contentType } from './content-types.js';
import { conversationType } from './conversations.js';

type Item = ChangeItem | SignalItem;

export function addHintFields<T extends Item>(type: ObjectRef<SchemaTypes, T>): void {
  builder.objectFields(type, (t) => ({
    conversationType: t.field({ type: conversationType, resolve: ({ hint }) => hint.conversationType }),
    // nullable in MessageHint: one document may select it of every hint
    contentType: t.field({
      type: contentType,
      nullable: true,
      resolve: ({ hint }) => hint.contentType as ContentTypeName,
    }),
    originDevice: t.id({
      nullable: true,
      description: 'which of the viewer’s own devices did it; that one is told too',
      resolve: ({ hint }) => hint.originDevice,
    }),
  }));
}

// What a payload is: the registry, as clients read it.
import { contentTypes, type ContentTypeName } from '../domain/content-types.js';
import { builder } from './builder.js';

export const contentType = builder.enumType('ContentType', {
  description:
    'What a payload is, with the shape of its content. Users send those that count as unread; the rest come from the service.',
  values: Object.fromEntries(
    Object.entries(contentTypes).map(([name, { about }]) => [name, { description: about }]),
  ) as Record<ContentTypeName, { description: string }>,
});

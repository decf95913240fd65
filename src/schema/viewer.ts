// Who is asking.
import { devices, thisDevice } from '../domain/devices.js';
import { requirePerson } from '../domain/access.js';
import { badge as loadBadge } from '../domain/unread.js';
import type { PersonViewer } from '../model.js';
import { builder } from './builder.js';
import { viewerOf } from './context.js';
import { device } from './devices.js';
import { badge } from './unread.js';
import { user, userOf } from './users.js';

const viewer = builder.objectRef<PersonViewer>('Viewer').implement({
  description: 'The user that the credential stands for, and the device it belongs to.',
  fields: (t) => ({
    id: t.id({ description: 'the user’s id', resolve: (me) => me.user }),
    user: t.field({
      type: user,
      resolve: (me, _, context) => userOf(context, me.user),
    }),
    device: t.field({
      type: device,
      nullable: true,
      description: 'null for the service key acting as the user',
      resolve: (me, _, { deps }) => thisDevice(deps, me),
    }),
    devices: t.field({
      type: [device],
      description: 'every device that holds one of the user’s slots (at most 20), oldest first',
      resolve: (me, _, { deps }) => devices(deps, me),
    }),
    badge: t.field({ type: badge, resolve: (me, _, { deps }) => loadBadge(deps, me) }),
  }),
});

builder.queryField('viewer', (t) =>
  t.field({
    type: viewer,
    description: 'Who is asking. FORBIDDEN for the service key by itself.',
    resolve: (_, __, context) => requirePerson(viewerOf(context)),
  }),
);

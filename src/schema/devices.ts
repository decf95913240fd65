// Devices and their credentials.
import { registerDevice, reinstall, revokeDevice, type DeviceAnswer } from '../domain/devices.js';
import type { Device } from '../model.js';
import { builder } from './builder.js';
import { viewerOf } from './context.js';

export const device = builder.objectRef<Device>('Device').implement({
  description: 'One installation slot of a user: a phone, a laptop, a browser profile.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name', { nullable: true }),
    installEpoch: t.exposeInt('installEpoch', {
      description: 'rises with every install; a credential of an earlier one is STALE_INSTALL',
    }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime', nullable: true, description: 'to the minute' }),
  }),
});

const devicePayload = builder.objectRef<DeviceAnswer>('DevicePayload').implement({
  fields: (t) => ({
    device: t.expose('device', { type: device }),
    credential: t.exposeString('credential', {
      nullable: true,
      description: '`tm_<deviceId>.<secret>.<installEpoch>`: send it as `Authorization: Bearer …`. Not shown again.',
    }),
  }),
});

const registerDeviceInput = builder.inputType('RegisterDeviceInput', {
  fields: (t) => ({
    user: t.id({ description: 'whose; required with the service key by itself, else the viewer' }),
    deviceId: t.id({
      description:
        '1 to 64 of [A-Za-z0-9_-]; made by the server if absent. One that exists gets a new secret and the next epoch.',
    }),
    name: t.string({ description: '1 to 64 characters' }),
  }),
});

builder.mutationFields((t) => ({
  registerDevice: t.field({
    type: devicePayload,
    nullable: true,
    description:
      'A new device, or a new secret for one whose credential is lost. Service key, not a device. At most 20 devices a user (BAD_USER_INPUT); CONFLICT when the id is another user’s.',
    args: { input: t.arg({ type: registerDeviceInput, required: true }) },
    resolve: (_, { input }, context) => registerDevice(context.deps, viewerOf(context), input),
  }),
  reinstall: t.field({
    type: devicePayload,
    nullable: true,
    description:
      'The app was installed anew and holds no data: raises the device’s epoch, drops its delivery cursors, keeps the user’s read positions. Repeating the current installId changes nothing and answers the same; one of an earlier install is STALE_INSTALL. Takes a credential of any epoch. Never call it because of STALE_INSTALL.',
    args: {
      installId: t.arg.string({
        required: true,
        description: 'made by the client once per install, 1 to 64 characters',
      }),
    },
    resolve: (_, args, { deps, auth }) => reinstall(deps, auth, args),
  }),
  revokeDevice: t.field({
    type: devicePayload,
    nullable: true,
    description:
      'Frees the slot, refuses the credential from now on and closes its sockets (4401 REVOKED). Own devices, or the service key.',
    args: { deviceId: t.arg.id({ required: true }) },
    resolve: (_, args, context) => revokeDevice(context.deps, viewerOf(context), args),
  }),
}));

// Devices, their credentials and their installs, as clients and the application's server meet them.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as documents from '../support/documents.js';
import { listenToReads } from '../support/live-hints.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let user = '';

beforeAll(async () => {
  // by itself the node looks after an hour: what closes sockets here is the hint, or the check that a test asks for
  world = await startWorld({ overrides: { checkEveryMs: 3_600_000 } });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  user = fresh('user-');
  await world.users(user);
});

interface DeviceRow {
  readonly id: string;
  readonly installEpoch: number;
  readonly lastSeenAt: string | null;
}
const devicesOf = async (actor: Actor) =>
  (await actor.ask<{ viewer: { devices: DeviceRow[] } }>('{ viewer { devices { id installEpoch lastSeenAt } } }'))
    .viewer.devices;
const revoke = (by: Actor, deviceId: string) => by.ask(documents.revokeDevice, { deviceId });
const partsOf = (credential: string) => {
  const [device = '', secret = '', epoch = ''] = credential.replace(/^tm_/u, '').split('.');
  return { device, secret, epoch: Number(epoch) };
};
const idOf = ({ credential }: Actor) => partsOf(credential).device;
const withEpoch = (actor: Actor, epoch: number) => {
  const { device, secret } = partsOf(actor.credential);
  return actor.as(`tm_${device}.${secret}.${epoch}`);
};
const refused = (code: string, facts: object = {}) => ({ code, extensions: facts });
const unauthenticated = refused('UNAUTHENTICATED');
const revoked = refused('UNAUTHENTICATED', { reason: 'REVOKED', retryable: false });
const stale = (installEpoch: number) => refused('STALE_INSTALL', { installEpoch, retryable: false });

describe('slots', () => {
  test('[I2] at most 20 devices a user, also when 40 are registered at once; revoking frees a slot', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 40 }, () => world.device(user)));
    const made = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(made).toHaveLength(20);
    for (const one of tries) {
      if (one.status === 'rejected') expect(one.reason).toMatchObject(refused('BAD_USER_INPUT', { limit: 20 }));
    }
    const [first, second] = made;
    if (!first || !second) throw new Error('no devices');
    expect((await devicesOf(second)).map(({ id }) => id).toSorted()).toEqual(made.map(idOf).toSorted());
    await world.device(user, idOf(first)); // renewing takes no slot
    await revoke(second, idOf(first));
    expect(await devicesOf(second)).toHaveLength(19);
    await world.device(user);
    // the revoked one comes back only where there is room
    await expect(world.device(user, idOf(first))).rejects.toMatchObject(refused('BAD_USER_INPUT', { limit: 20 }));
    await revoke(second, idOf(made[2] ?? first));
    await expect(first.badge()).rejects.toMatchObject(unauthenticated);
    expect((await devicesOf(await world.device(user, idOf(first)))).length).toBe(20);
  });

  test('[I2] viewer.devices lists ids, epochs and when each was last seen, oldest first', async () => {
    const [one, two] = [await world.device(user), await world.device(user)];
    await one.badge();
    const listed = await devicesOf(one);
    expect(listed.map(({ id, installEpoch }) => [id, installEpoch])).toEqual([
      [idOf(one), 0],
      [idOf(two), 0],
    ]);
    expect(listed.map(({ lastSeenAt }) => lastSeenAt !== null)).toEqual([true, false]);
    expect(await world.asUser(user).ask('{ viewer { id device { id } } }')).toEqual({
      viewer: { id: user, device: null },
    });
  });

  test('[I1] [I2] ids: made by the server if absent, of one form, of one user', async () => {
    const register = (deviceId?: string, owner = user) =>
      world.service.ask<{ registerDevice: { credential: string } }>(documents.registerDevice, {
        input: { user: owner, deviceId },
      });
    const { registerDevice } = await register();
    expect(registerDevice.credential).toMatch(/^tm_[\w-]{1,64}\.[\w-]{43}\.0$/u);
    for (const id of ['', 'a.b', 'a b', 'ü', 'x'.repeat(65)])
      await expect(register(id)).rejects.toMatchObject(refused('BAD_USER_INPUT'));
    await expect(register(partsOf(registerDevice.credential).device, 'ana')).rejects.toMatchObject(
      refused('CONFLICT', { outcome: 'TAKEN' }),
    );
    await expect(register(undefined, 'nobody')).rejects.toMatchObject(refused('BAD_USER_INPUT'));
    // both at once, for two users: one of them has it
    const id = fresh('contested-');
    const both = await Promise.allSettled([register(id), register(id, 'ana')]);
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(both.find((one) => one.status === 'rejected')?.reason).toMatchObject(refused('CONFLICT'));
  });
});

describe('credentials', () => {
  test('[I1] only the hash of the secret is stored', async () => {
    const device = await world.device(user);
    const { rows } = await world.app.deps.store.pool.query('SELECT d::text AS row FROM devices d WHERE id = $1', [
      idOf(device),
    ]);
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(partsOf(device.credential).secret);
  });

  test('[I1] [I3] what is malformed, foreign, unknown or of an epoch above the stored one is UNAUTHENTICATED, over HTTP and WebSocket', async () => {
    const [device, other] = [await world.device(user), await world.device(user)];
    const { device: id, secret } = partsOf(device.credential);
    const wrong = [
      '',
      'nonsense',
      `tm_${id}`,
      `tm_${id}.${secret}`,
      `tm_${id}.${secret}.-1`,
      `tm_${id}.${secret}.0.0`,
      `tm_${id}.${secret.slice(1)}.0`,
      `tm_${id}.${partsOf(other.credential).secret}.0`,
      `tm_${id}x.${secret}.0`,
      `tm_${id}.${secret}.1`,
      `tm_${id}.${secret}.999999999`,
      `tm_${id}.${'A'.repeat(43)}.0`,
    ];
    for (const credential of wrong) {
      await expect(device.as(credential).badge(), credential).rejects.toMatchObject(unauthenticated);
      await expect(device.as(credential).reinstall('x'), credential).rejects.toMatchObject(unauthenticated);
      expect(await world.app.socket(credential).closed, credential).toEqual({ code: 4401, reason: 'UNAUTHENTICATED' });
    }
    await device.badge();
  });

  test('[I7] without a credential introspection and __typename answer, nothing else does', async () => {
    const asked = await world.app.query(null, '{ __typename __schema { queryType { name } } }');
    expect(asked).toEqual({ data: { __typename: 'Query', __schema: { queryType: { name: 'Query' } } } });
    const { errors, data } = await world.app.query(null, '{ __typename badge { unread } }');
    expect([data, errors?.[0]?.extensions?.['code']]).toEqual([null, 'UNAUTHENTICATED']);
  });
});

describe('installs', () => {
  test('[I2] a new install id raises the epoch and keeps the secret; the current one repeats the answer; an earlier one is stale', async () => {
    const device = await world.device(user);
    const { secret } = partsOf(device.credential);
    const first = await device.reinstall('one');
    expect(partsOf(first.credential)).toEqual({ device: idOf(device), secret, epoch: 1 });
    for (const epoch of [0, 1]) expect(await withEpoch(device, epoch).reinstall('one')).toEqual(first);
    const second = await withEpoch(device, 1).reinstall('two');
    expect(second.installEpoch).toBe(2);
    for (const epoch of [0, 1, 2]) {
      expect(await withEpoch(device, epoch).reinstall('two')).toEqual(second);
      await expect(withEpoch(device, epoch).reinstall('one')).rejects.toMatchObject(stale(2));
    }
    for (const epoch of [0, 1]) await expect(withEpoch(device, epoch).badge()).rejects.toMatchObject(stale(2));
    await withEpoch(device, 2).badge();
    await expect(device.reinstall('')).rejects.toMatchObject(refused('BAD_USER_INPUT'));
  });

  test('[I2] ten reinstalls at once with one id are one install; with ten ids ten', async () => {
    const device = await world.device(user);
    const same = await Promise.all(Array.from({ length: 10 }, () => device.reinstall('same')));
    expect(new Set(same.map(({ credential }) => credential)).size).toBe(1);
    const each = await Promise.all(Array.from({ length: 10 }, (_, n) => device.reinstall(`id ${n}`)));
    expect(each.map(({ installEpoch }) => installEpoch).toSorted((a, b) => a - b)).toEqual([
      2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]);
  });

  test('[I2] a lost credential: registering the device anew gives a new secret and the next epoch, and ends the old install', async () => {
    const device = await world.device(user);
    await device.reinstall('one');
    const renewed = await world.device(user, idOf(device));
    expect(partsOf(renewed.credential).epoch).toBe(2);
    expect(partsOf(renewed.credential).secret).not.toBe(partsOf(device.credential).secret);
    for (const old of [device, withEpoch(device, 1)]) {
      await expect(old.badge()).rejects.toMatchObject(unauthenticated);
      await expect(old.reinstall('two')).rejects.toMatchObject(unauthenticated);
    }
    await expect(renewed.reinstall('one')).rejects.toMatchObject(stale(2)); // an install id of an earlier install
    expect((await renewed.reinstall('two')).installEpoch).toBe(3);
  });

  test('[I2] [I5] a revoked device is refused, reinstalls nothing, and comes back only by being registered', async () => {
    const [device, other] = [await world.device(user), await world.device(user)];
    await device.reinstall('one');
    const current = withEpoch(device, 1);
    await revoke(other, idOf(device));
    await revoke(other, idOf(device)); // repeating it changes nothing
    for (const actor of [device, current]) {
      await expect(actor.badge()).rejects.toMatchObject(revoked);
      for (const id of ['one', 'two']) await expect(actor.reinstall(id)).rejects.toMatchObject(revoked);
    }
    expect(await world.app.socket(current.credential).closed).toEqual({ code: 4401, reason: 'REVOKED' });
    const back = await world.device(user, idOf(device));
    expect(partsOf(back.credential).epoch).toBe(2);
    await expect(current.badge()).rejects.toMatchObject(unauthenticated);
    await back.badge();
  });

  test('[I2] only own devices can be revoked; another user’s looks like none', async () => {
    const [device, foreign] = [await world.device(user), await world.device('ana')];
    for (const id of [idOf(foreign), 'no-such-device']) {
      await expect(revoke(device, id)).rejects.toMatchObject(refused('BAD_USER_INPUT'));
      await expect(revoke(world.asUser(user), id)).rejects.toMatchObject(refused('BAD_USER_INPUT'));
    }
    await foreign.badge();
    await revoke(world.service, idOf(foreign));
    await expect(foreign.badge()).rejects.toMatchObject(revoked);
    await revoke(device, idOf(device));
    await expect(device.badge()).rejects.toMatchObject(revoked);
  });
});

describe('open sockets and streams', () => {
  const endings: [what: string, reason: string, end: (device: Actor) => Promise<unknown>][] = [
    ['revoked by the service', 'REVOKED', (device) => revoke(world.service, idOf(device))],
    ['revoked by itself', 'REVOKED', (device) => revoke(device, idOf(device))],
    ['reinstalled', 'STALE_INSTALL', (device) => device.reinstall('next')],
    ['registered anew', 'STALE_INSTALL', (device) => world.device(user, idOf(device))],
  ];
  test.each(endings)(
    '[I4] a device that is %s: its sockets close with 4401 %s, its stream is cut, the other device lives on',
    async (_, reason, end) => {
      const [device, other] = [await world.device(user), await world.device(user)];
      const { id } = (await other.createConv({})).conv;
      const [one, two, live] = [await listenToReads(device), await listenToReads(device), await listenToReads(other)];
      const stream = await world.app.sse(device.credential, 'subscription { readChanged { resync read } }');
      await stream.next();
      const began = performance.now();
      await end(device);
      for (const { socket } of [one, two]) expect(await socket.closed).toEqual({ code: 4401, reason });
      expect(await stream.ended).toBe('cut');
      expect(performance.now() - began).toBeLessThan(5_000);
      await other.markRead(id, 1);
      expect(await live.next()).toMatchObject({ conv: { id }, read: 1 });
      expect([one, two].flatMap(({ rows }) => rows)).toHaveLength(2); // each its resync, nothing of the read
      await live.socket.close();
    },
  );

  test('[I4] repeating the current install id closes nothing', async () => {
    const device = await world.device(user);
    const current = device.as((await device.reinstall('one')).credential);
    const live = await listenToReads(current);
    await device.reinstall('one');
    const { id } = (await current.createConv({})).conv;
    await current.markRead(id, 1);
    expect(await live.next()).toMatchObject({ conv: { id } });
    await live.socket.close();
  });

  test.each([
    ['REVOKED', 'revoked_at = now()'],
    ['STALE_INSTALL', 'install_epoch = install_epoch + 1'],
  ])('[I4] a hint that was lost: the node’s next check closes with %s', async (reason, change) => {
    const [device, other] = [await world.device(user), await world.device(user)];
    const [live, untouched] = [await listenToReads(device), await listenToReads(other)];
    await world.app.deps.store.pool.query(`UPDATE devices SET ${change} WHERE id = $1`, [idOf(device)]);
    await world.app.connections.check();
    expect(await live.socket.closed).toEqual({ code: 4401, reason });
    expect(untouched.socket.ws.readyState).toBe(untouched.socket.ws.OPEN);
    await untouched.socket.close();
  });

  test('[I3] [I4] a socket of an older install is refused at the door', async () => {
    const device = await world.device(user);
    await device.reinstall('next');
    expect(await world.app.socket(device.credential).closed).toEqual({ code: 4401, reason: 'STALE_INSTALL' });
    const stream = await world.app.sse(device.credential, 'subscription { readChanged { read } }');
    const answer = await stream.next().catch(() => null);
    expect(JSON.stringify(answer)).toContain('STALE_INSTALL');
  });
});

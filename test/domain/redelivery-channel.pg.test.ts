// The redelivery scan tells what was lost of contacts and requests, too (H5).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { act, ask, listenToChanges } from '../support/contacts.js';
import { group } from '../support/groups.js';
import { swallowingBus, type SwallowingBus } from '../support/swallowing-bus.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

let bus: SwallowingBus;
let world: World;
let ana: Actor;

beforeAll(async () => {
  bus = swallowingBus();
  world = await startWorld({ overrides: { bus } });
  ana = await world.device('ana');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const settings = 'mutation ($user: ID!) { updateContact(user: $user, remark: "x") { contact { id } } }';

test.each<[string, (user: string, other: Actor) => Promise<unknown>, object]>([
  ['request', (user) => ask(ana, user, 'hi'), { contentType: 'FRIEND_REQUEST_RECEIVED' }],
  [
    'acceptance',
    (_, other) => act(other, 'acceptContact', 'ana'),
    { contentType: 'FRIEND_REQUEST_APPROVED', change: { contactRequest: { state: 'ACCEPTED' } } },
  ],
  ['friendship', (_, other) => act(other, 'acceptContact', 'ana'), { change: { contact: { active: true } } }],
  ['refusal', (_, other) => act(other, 'refuseContact', 'ana'), { contentType: 'FRIEND_REQUEST_REJECTED' }],
  ['block', (_, other) => act(other, 'blockContact', 'ana'), { change: { contact: { blocked: true } } }],
  [
    'setting',
    (_, other) => act(other, 'acceptContact', 'ana').then(() => other.ask(settings, { user: 'ana' })),
    { change: { contact: { remark: 'x' } } },
  ],
])('[H5] a lost %s is told to the devices of the user, once', async (what, change, expected) => {
  const user = fresh('user');
  await world.users(user);
  const [phone, laptop] = [await world.device(user), await world.device(user)];
  if (what !== 'request') await ask(ana, user);
  const live = await listenToChanges(laptop);
  bus.swallow((to) => to === user);
  await change(user, phone);
  bus.swallow(null);
  await world.app.redelivery.scan();
  await world.app.redelivery.scan();
  const fits = (row: object) => {
    try {
      expect(row).toMatchObject(expected);
      return true;
    } catch {
      return false;
    }
  };
  await live.until(fits);
  await world.app.redelivery.scan();
  await world.app.redelivery.scan();
  // what comes next is new
  await act(phone, 'blockContact', 'ben');
  expect(await live.until((row) => row.contentType === 'FRIEND_BLOCK')).toMatchObject({
    change: { contact: { id: 'ben' } },
  });
});

test('[H5] [G5] a lost request to join is told to the admin, and a lost withdrawal as well', async () => {
  const admin = fresh('admin');
  await world.users(admin);
  const phone = await world.device(admin);
  const { conv } = await ana.createConv({ members: [admin], joinPolicy: 'APPROVAL' });
  await group(ana, 'setRole', { conv: conv.id, user: admin, role: 'ADMIN' });
  const live = await listenToChanges(phone);
  const lose = async (happens: () => Promise<unknown>) => {
    bus.swallow((to) => to === admin);
    await happens();
    bus.swallow(null);
    await world.app.redelivery.scan();
    await world.app.redelivery.scan();
  };
  await lose(() => group(world.asUser('cho'), 'requestJoin', { conv: conv.id }));
  expect(await live.until((row) => row.contentType === 'GROUP_REQUEST_RECEIVED')).toBeDefined();
  await lose(() => group(ana, 'setRole', { conv: conv.id, user: admin, role: 'MEMBER' }));
  expect(await live.until((row) => row.contentType === 'GROUP_REQUEST_WITHDRAWN')).toBeDefined();
});

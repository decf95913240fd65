// Who has come into a large group without their node's hearing of it: the redelivery scan finds it out (H5, H7).
import { afterAll, beforeAll, test } from 'vitest';
import { listenToMessages } from '../support/live-hints.js';
import { swallowingBus } from '../support/swallowing-bus.js';
import { startWorld, type World } from '../support/world.js';

const bus = swallowingBus();
let world: World;

beforeAll(async () => {
  // hints go both ways for so long that nothing else looks again during this test
  world = await startWorld({
    config: { delivery: { pullAt: 3, bothMs: 3_600_000, everyMs: 1 } },
    overrides: { bus },
  });
  await world.users('dan', 'eva');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

test('[H5] [H7] who was added without a word is listened for after the scan, and hears what comes', async () => {
  const ana = await world.device('ana');
  const { conv } = await ana.createConv({ members: ['dan', 'eva'] });
  await world.app.deps.store.pool.query('UPDATE conversations SET both_until = NULL');
  const live = await listenToMessages(await world.device('ben'));
  bus.swallow((user) => user === 'ben');
  await ana.addMembers(conv.id, ['ben']);
  bus.swallow(null);
  await ana.send(conv.id, 'the channel alone carries it');
  for (let scan = 0; scan < 2; scan++) await world.app.redelivery.scan();
  await live.until(({ resync }) => resync === 'MODE');
  const { event } = await ana.send(conv.id, 'later');
  await live.until(({ seq }) => seq === event.seq);
  await live.socket.close();
});

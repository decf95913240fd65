// What the open sockets of a node hold on to.
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config.js';
import { Connections } from '../../src/domain/connections.js';
import { createRateLimits } from '../../src/domain/rate-limits.js';
import { createMemoryBus } from '../../src/hints/memory.js';
import type { DeviceId, UserId } from '../../src/model.js';
import { createStore } from '../../src/store/store.js';

test('[I4] [P3] a connection that could not be checked is refused, leaves nothing behind and does not count', async () => {
  await using store = createStore({ url: 'postgresql://nobody@127.0.0.1:1/nowhere', poolMax: 2 });
  await using bus = createMemoryBus();
  const rates = createRateLimits(readConfig({}).rates);
  await using connections = new Connections({ store, bus, rates, log: pino({ level: 'silent' }) });
  const viewer = { kind: 'device', user: 'ben' as UserId, device: 'ben-1' as DeviceId, installEpoch: 0 } as const;
  for (let n = 0; n < 50; n++) {
    const refused = connections.open(viewer, () => undefined);
    await expect(refused).rejects.not.toMatchObject({ code: 'RATE_LIMITED' });
  }
  expect(connections.size).toBe(0);
  expect(bus.stats()).toEqual({ sinks: 0, channels: 0 });
});

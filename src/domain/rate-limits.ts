// How often a device may do what (P3). Counted in this process, so that Redis is never on the path of a request; what is
// counted is forgotten after its window, so memory is bounded by the devices that are active now.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Rate, Rates } from '../config.js';
import { deviceOf, type Viewer } from '../model.js';
import { rateLimited } from './errors.js';

export interface RateLimits {
  /** @throws RATE_LIMITED; what is refused is not counted. The service key, the application's own server, has no limit. */
  spend(kind: keyof Rates, viewer: Viewer, points?: number): Promise<void>;
}

interface Window {
  readonly burst: number;
  readonly counter: RateLimiterMemory;
}

// as many as the burst within the time in which the rate allows that many: both numbers hold
const toWindow = ({ rate, perMs, burst }: Rate): Window => ({
  burst,
  counter: new RateLimiterMemory({ points: burst, duration: (burst / rate) * (perMs / 1_000) }),
});

async function take({ counter, burst }: Window, key: string, points: number): Promise<() => Promise<unknown>> {
  // a batch that is larger than the burst could never pass
  const counted = Math.min(points, burst);
  try {
    await counter.consume(key, counted);
    return () => counter.reward(key, counted);
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused;
    await counter.reward(key, counted);
    throw rateLimited(Math.max(1, Math.ceil(refused.msBeforeNext)));
  }
}

export function createRateLimits(rates: Rates): RateLimits {
  const perDevice = {
    send: toWindow(rates.send),
    read: toWindow(rates.read),
    ack: toWindow(rates.ack),
    connect: toWindow(rates.connect),
  };
  const connectsOfUser = toWindow(rates.connect);
  return {
    async spend(kind, viewer, points = 1) {
      const device = deviceOf(viewer);
      if (device === null) return;
      const giveBack = await take(perDevice[kind], device.device, points);
      if (kind !== 'connect') return;
      try {
        await take(connectsOfUser, device.user, points);
      } catch (error) {
        await giveBack();
        throw error;
      }
    },
  };
}

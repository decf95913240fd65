// What every use case is given: (deps, viewer, input). Made once by app.ts.
import type { Logger } from 'pino';
import type { Delivery, Limits } from '../config.js';
import type { HintBus } from '../hints/bus.js';
import type { Pace } from '../hints/pace.js';
import type { Metrics } from '../metrics.js';
import type { Store } from '../store/store.js';
import type { BadgeFeeds } from './badge-feed.js';
import type { Loads } from './loads.js';
import type { PullChannels } from './pull-channels.js';
import type { RateLimits } from './rate-limits.js';

/** Places where a test may pause or stop the process; nothing happens there otherwise. */
export type FailpointName = 'after lock' | 'before commit' | 'after commit' | 'before publish' | 'after publish';
export type Failpoint = (name: FailpointName) => Promise<void>;

export interface Deps {
  readonly store: Store;
  readonly bus: HintBus;
  /** what the subscribers of this node listen to */
  readonly channels: PullChannels;
  readonly pace: Pace;
  readonly delivery: Delivery;
  readonly loads: Loads;
  readonly badges: BadgeFeeds;
  readonly limits: Limits;
  readonly rates: RateLimits;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly failpoint: Failpoint;
}

// Live badges: for each user with subscribers on this node the badge now, then at most once per interval, the last change
// always (badgeChanged). One computation serves all of the user's subscribers.
import type { Logger } from 'pino';
import type { Listening } from '../hints/bus.js';
import type { Metrics } from '../metrics.js';
import type { Badge, BusHint, UserId } from '../model.js';
import { unavailable } from './errors.js';
import type { PullChannels } from './pull-channels.js';

interface Options {
  readonly channels: Pick<PullChannels, 'listen'>;
  readonly load: (user: UserId) => Promise<Badge>;
  readonly log: Logger;
  readonly metrics?: Metrics;
  readonly everyMs?: number;
}

/** The newest badge that was not yet read; older ones are not worth sending. */
export class BadgeStream implements AsyncIterableIterator<Badge, undefined> {
  #newest: Badge | null = null;
  #reader: ((result: IteratorResult<Badge, undefined>) => void) | null = null;
  #closed = false;
  readonly #onClose: (stream: BadgeStream) => void;

  constructor(onClose: (stream: BadgeStream) => void) {
    this.#onClose = onClose;
  }

  put(badge: Badge): void {
    if (this.#closed) return;
    this.#newest = badge;
    this.#serve();
  }

  next(): Promise<IteratorResult<Badge, undefined>> {
    if (this.#closed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#reader = resolve;
      this.#serve();
    });
  }

  return(): Promise<IteratorResult<Badge, undefined>> {
    if (!this.#closed) {
      this.#closed = true;
      this.#reader?.({ done: true, value: undefined });
      this.#onClose(this);
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  async throw(error?: unknown): Promise<IteratorResult<Badge, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #serve(): void {
    if (this.#reader === null || this.#newest === null) return;
    const [reader, value] = [this.#reader, this.#newest];
    this.#reader = this.#newest = null;
    reader({ done: false, value });
  }
}

/** One user's subscribers on this node. */
class Feed {
  readonly streams = new Set<BadgeStream>();
  readonly listening: Promise<Listening>;
  readonly #user: UserId;
  readonly #options: Options;
  /** the moment of the last one computed; null before the first */
  asOf: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #lastAt = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(user: UserId, options: Options) {
    this.#user = user;
    this.#options = options;
    const changed = () => {
      this.changed();
    };
    // a signal changes nothing that is counted
    const hint = ({ kind }: BusHint) => {
      if (kind !== 'signal') changed();
    };
    this.listening = options.channels.listen(user, { hint, resync: changed });
  }

  /** One computation after the other, so that an older badge is never put after a newer one. */
  load(): Promise<Badge> {
    const badge = this.#last.then(async () => {
      const loaded = await this.#options.load(this.#user);
      this.asOf = loaded.asOf;
      return loaded;
    });
    this.#last = badge.catch(() => undefined);
    return badge;
  }

  /** A change while one is on its way needs no timer of its own: the badge is computed when the timer ends. */
  changed(): void {
    const waitMs = this.#lastAt + (this.#options.everyMs ?? 1_000) - performance.now();
    this.#timer ??= setTimeout(() => void this.#send(), Math.max(0, waitMs));
  }

  async #send(): Promise<void> {
    this.#timer = null;
    this.#lastAt = performance.now();
    try {
      const badge = await this.load();
      for (const stream of this.streams) stream.put(badge);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'a badge could not be computed, trying again');
      if (this.streams.size > 0) this.changed();
    }
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.listening.then(
      (listening) => {
        listening.stop();
      },
      () => undefined,
    );
  }
}

export class BadgeFeeds {
  readonly #feeds = new Map<UserId, Feed>();
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /** The badges that subscribers hold, and the moments that they are of. */
  get shown(): { user: UserId; asOf: string }[] {
    return [...this.#feeds].flatMap(([user, { asOf }]) => (asOf === null ? [] : { user, asOf }));
  }

  /** As if a hint had come: computed anew, for whoever subscribes. */
  refresh(user: UserId): void {
    this.#feeds.get(user)?.changed();
  }

  /** Live once this resolves; the badge now is the first item (H2). */
  async open(user: UserId): Promise<BadgeStream> {
    const feed = this.#feeds.get(user) ?? new Feed(user, this.#options);
    this.#feeds.set(user, feed);
    const { metrics } = this.#options;
    const stream = new BadgeStream((closed) => {
      feed.streams.delete(closed);
      metrics?.subscriptionClosed('badgeChanged');
      if (feed.streams.size > 0) return;
      feed.stop();
      if (this.#feeds.get(user) === feed) this.#feeds.delete(user);
    });
    feed.streams.add(stream);
    metrics?.subscriptionOpened('badgeChanged');
    try {
      await feed.listening;
      stream.put(await feed.load());
    } catch (error) {
      await stream.return();
      this.#options.log.warn({ err: error }, 'live badges could not begin');
      throw unavailable('live badges are');
    }
    return stream;
  }
}

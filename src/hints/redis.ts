// The hint bus of several nodes: graphql-redis-subscriptions over two ioredis connections, one that listens and one that
// publishes. Redis may be away at any time, from the start too: hints are then late, and once it is back every sink that
// may have missed one is told to resync (H3).
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { RedisPubSub } from 'graphql-redis-subscriptions';
import type { Redis } from 'ioredis';
import type { Metrics } from '../metrics.js';
import type { BusHint, ConvId, MessageHint, SignalHint, UserId } from '../model.js';
import { AckedSubscriber } from './acked-subscriber.js';
import type { BusLog, HintBus, HintSink, Listening } from './bus.js';
import { convChannel, FanOut, userChannel, type Channel } from './fan-out.js';
import { OwingPublisher } from './owing-publisher.js';
import { connectRedis, endRedis } from './redis-connection.js';
import { fromWire, generationOf, toWire } from './wire.js';

export interface RedisBusOptions {
  readonly url: string;
  /** of every channel */
  readonly prefix: string;
  readonly log: BusLog;
  readonly metrics?: Metrics;
  readonly heartbeatMs?: number;
  /** silence of the node's own heartbeat after which both connections are made anew */
  readonly heartbeatMissMs?: number;
  readonly listenTimeoutMs?: number;
}

/** How long after a restore other nodes may still speak of the life before: they check more often than that. */
const lateNodesMs = 60_000;

export function createRedisBus(options: RedisBusOptions): HintBus {
  return new RedisBus(options);
}

/** One Redis subscription per channel and node, shared by all its sinks. */
interface Subscribed {
  readonly id: Promise<number>;
  uses: number;
}

class RedisBus implements HintBus {
  readonly #prefix: string;
  readonly #log: BusLog;
  readonly #heartbeatMissMs: number;
  readonly #listenTimeoutMs: number;
  readonly #listener: Redis;
  readonly #talker: Redis;
  readonly #subscriber: AckedSubscriber;
  readonly #publisher: OwingPublisher;
  readonly #pubsub: RedisPubSub;
  readonly #fanOut: FanOut;
  readonly #channels = new Map<Channel, Subscribed>();
  readonly #resyncChannel: string;
  readonly #timer: NodeJS.Timeout;
  #lastBeatAt = performance.now();
  #generation = '';
  #before = { generation: '', until: 0 };
  #warnedOfVersion = false;
  #closed = false;

  constructor({
    url,
    prefix,
    log,
    metrics,
    heartbeatMs = 5_000,
    heartbeatMissMs = 15_000,
    listenTimeoutMs = 5_000,
  }: RedisBusOptions) {
    this.#prefix = prefix;
    this.#log = log;
    this.#heartbeatMissMs = heartbeatMissMs;
    this.#listenTimeoutMs = listenTimeoutMs;
    this.#fanOut = new FanOut(log);
    this.#resyncChannel = `${prefix}resync`;
    this.#listener = connectRedis(url, 'listener', log);
    // Nobody waits for a publish, so its timeout only has to be shorter than for ever.
    this.#talker = connectRedis(url, 'publisher', log, { commandTimeout: heartbeatMs });
    this.#subscriber = new AckedSubscriber({ connection: this.#listener, log, onRestored: this.#restored });
    this.#pubsub = new RedisPubSub({
      publisher: this.#talker,
      subscriber: this.#subscriber.facade() as Redis,
      serializer: String, // hints come here as text already, one text for all users
    });
    this.#publisher = new OwingPublisher({
      publish: (channel, message) => this.#pubsub.publish(channel, message),
      resyncChannel: this.#resyncChannel,
      log,
      metrics,
    });
    // Whatever the message says, and in whatever version: a resync is always safe.
    void this.#pubsub.subscribe(this.#resyncChannel, () => {
      if (!this.#closed) this.#fanOut.resyncAll('BUS');
    });
    this.#talker.on('close', () => {
      this.#publisher.broken();
    });
    this.#timer = this.#startHeart(`${prefix}beat:${randomUUID()}`, heartbeatMs);
  }

  get state(): 'up' | 'down' {
    return this.#subscriber.up && this.#talker.status === 'ready' ? 'up' : 'down';
  }

  publish(users: readonly UserId[], hint: BusHint): void {
    if (this.#closed) return;
    const message = toWire(hint, this.#generation);
    for (const user of users) this.#publisher.send(this.#prefix + userChannel(user), message);
  }

  publishToConv(hint: MessageHint): void {
    this.#publisher.send(this.#prefix + convChannel(hint.conv), toWire(hint, this.#generation));
  }

  publishToAll(hint: SignalHint): void {
    this.#publisher.send(`${this.#prefix}all`, toWire(hint, this.#generation));
  }

  listen(user: UserId, sink: HintSink): Promise<Listening> {
    return this.#listen(userChannel(user), sink);
  }

  listenToConv(conv: ConvId, sink: HintSink): Promise<Listening> {
    return this.#listen(convChannel(conv), sink);
  }

  listenToAll(sink: HintSink): Promise<Listening> {
    return this.#listen('all', sink);
  }

  /** Nothing is subscribed anew: the channels are the same, what travels there says which life it is about. */
  enter(generation: string): boolean {
    if (generation === this.#generation) return false;
    const isAnother = this.#generation !== '';
    this.#before = { generation: this.#generation, until: performance.now() + lateNodesMs };
    this.#generation = generation;
    // what others said of the new life before now was dropped: whoever asks now is told it
    if (isAnother) this.#fanOut.resyncAll('RESTORED');
    return isAnother;
  }

  #isForeign(payload: unknown): boolean {
    const generation = generationOf(payload);
    if (generation === null || generation === this.#generation) return false;
    return generation !== this.#before.generation || performance.now() > this.#before.until;
  }

  stats(): { readonly sinks: number; readonly channels: number } {
    return { sinks: this.#fanOut.sinks, channels: this.#channels.size };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#subscriber.close();
    this.#publisher.close();
    await Promise.all([endRedis(this.#listener), endRedis(this.#talker)]);
  }

  async #listen(channel: Channel, sink: HintSink): Promise<Listening> {
    if (this.#closed) throw new Error('the hint bus is closed');
    const held = this.#hold(channel);
    try {
      await this.#subscriber.live(this.#prefix + channel, this.#listenTimeoutMs);
    } catch (error) {
      this.#release(channel, held);
      throw error;
    }
    return this.#fanOut.add(channel, sink, () => {
      this.#release(channel, held);
    });
  }

  #hold(channel: Channel): Subscribed {
    const known = this.#channels.get(channel);
    if (known) {
      known.uses++;
      return known;
    }
    const id = this.#pubsub.subscribe(this.#prefix + channel, (payload: unknown) => {
      this.#received(channel, payload);
    });
    const held: Subscribed = { id, uses: 1 };
    this.#channels.set(channel, held);
    return held;
  }

  #release(channel: Channel, held: Subscribed): void {
    held.uses--;
    // The id comes a moment later; until then somebody may hold the channel again.
    void held.id.then((id) => {
      if (held.uses > 0 || this.#channels.get(channel) !== held) return;
      this.#channels.delete(channel);
      this.#pubsub.unsubscribe(id);
    });
  }

  #received(channel: Channel, payload: unknown): void {
    if (this.#closed || this.#isForeign(payload)) return;
    const hint = fromWire(payload);
    if (hint) {
      this.#fanOut.hint(channel, hint);
      return;
    }
    if (!this.#warnedOfVersion) this.#log.warn({ channel }, 'a hint cannot be read: a node of another version?');
    this.#warnedOfVersion = true; // once is enough while nodes are being replaced
    this.#fanOut.resync(channel, 'VERSION');
  }

  /** A channel is live again after a break; one that is nobody's, such as the heartbeat's, has no sinks. */
  readonly #restored = (channel: string): void => {
    if (channel === this.#resyncChannel) this.#log.info(this.stats(), 'the hint bus is back');
    this.#fanOut.resync(channel.slice(this.#prefix.length) as Channel, 'BUS');
  };

  /** This node's own sign of life, through Redis and back. */
  #startHeart(channel: string, heartbeatMs: number): NodeJS.Timeout {
    const heard = (): void => {
      this.#lastBeatAt = performance.now();
    };
    void this.#pubsub.subscribe(channel, heard);
    this.#listener.on('ready', heard);
    this.#talker.on('ready', () => void this.#publisher.beat(channel));
    return setInterval(() => {
      this.#reconnectIfSilent();
      void this.#publisher.beat(channel);
    }, heartbeatMs).unref();
  }

  /** A peer that vanished without a word is noticed only by its silence. */
  #reconnectIfSilent(): void {
    if (performance.now() - this.#lastBeatAt <= this.#heartbeatMissMs) return;
    this.#lastBeatAt = performance.now();
    const connected = [this.#listener, this.#talker].filter(({ status }) => status === 'ready' || status === 'connect');
    if (connected.length > 0) this.#log.warn({}, 'the hint bus fell silent; connecting anew');
    for (const connection of connected) connection.disconnect(true);
  }
}

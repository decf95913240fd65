// What the subscribers of this node listen to (H7): each its user's channel, and of each conversation in PULL mode one channel
// for all members here, from the first who comes to the last who goes. Whom a hint of such a channel reaches is decided when
// it is passed on: the members, as they are then, in one of whose periods it lies (M1, M2).
import type { Logger } from 'pino';
import type { HintBus, HintSink, Listening } from '../hints/bus.js';
import { Mailbox } from '../hints/mailbox.js';
import type { Metrics } from '../metrics.js';
import type { BusHint, ConvId, MessageHint, ResyncReason, UserId } from '../model.js';
import type { Store } from '../store/store.js';

/** After Redis was away all users of a node are looked at. */
const maxUsersAtOnce = 500;

interface Options {
  readonly bus: HintBus;
  readonly store: Store;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** how often it is looked for switches that this node was not told of; well within the time that hints go both ways */
  readonly lookEveryMs: number;
}

interface Subscriber {
  readonly sink: HintSink;
  /** its first item is on its way: what it does not hear from now on it must be told */
  live: boolean;
}

/** A user with subscribers on this node. */
interface Local {
  readonly subscribers: Set<Subscriber>;
  readonly rooms: Map<ConvId, Room>;
}

/** The channel of one conversation, shared by its members here. */
interface Room {
  readonly members: Set<UserId>;
  /** what has arrived and is not yet passed on: bounded, merged, in order (H4) */
  readonly arrived: Mailbox;
  readonly listening: Promise<Listening>;
}

export class PullChannels implements AsyncDisposable {
  readonly #options: Options;
  readonly #locals = new Map<UserId, Local>();
  readonly #rooms = new Map<ConvId, Room>();
  /** whose memberships the next look reads */
  #asked = new Set<UserId>();
  #nextLook: Promise<void> | null = null;
  #lastLook: Promise<void> = Promise.resolve();
  readonly #timer: NodeJS.Timeout;

  constructor(options: Options) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#lookForSwitches(), options.lookEveryMs).unref();
  }

  /**
   * Resolves once everything that this user may be told reaches the sink: the user's channel is acknowledged, then the
   * memberships are read, then their channels are acknowledged (H2, H7). Rejects when that is not to be had now.
   */
  async listen(user: UserId, sink: HintSink): Promise<Listening> {
    const subscriber: Subscriber = { sink, live: false };
    const local: Local = this.#locals.get(user) ?? { subscribers: new Set(), rooms: new Map() };
    this.#locals.set(user, local);
    local.subscribers.add(subscriber);
    const own = this.#options.bus.listen(user, this.#watched(user, sink));
    const stop = (): void => {
      own.then(stopListening, ignore);
      this.#forget(user, local, subscriber);
    };
    try {
      await own;
      await this.#look(user);
      await Promise.all([...local.rooms.values()].map(({ listening }) => listening));
      subscriber.live = true;
      return { stop };
    } catch (error) {
      stop();
      throw error;
    }
  }

  /** What comes on the user's own channel: hints for the sink, and occasions to look again, for this node. */
  #watched(user: UserId, sink: HintSink): HintSink {
    return {
      hint: (hint) => {
        sink.hint(hint);
        if (tellsOfMembership(hint)) this.refresh(user);
      },
      resync: (reason) => {
        sink.resync(reason);
        this.refresh(user);
      },
    };
  }

  #forget(user: UserId, local: Local, subscriber: Subscriber): void {
    local.subscribers.delete(subscriber);
    if (local.subscribers.size > 0 || this.#locals.get(user) !== local) return;
    this.#locals.delete(user);
    for (const conv of [...local.rooms.keys()]) this.#leave(user, local, conv);
  }

  /** Resolves when a read that begins after this call has been acted on. Looks follow each other, so the newest wins. */
  #look(user: UserId): Promise<void> {
    this.#asked.add(user);
    this.#nextLook ??= this.#lastLook = this.#lastLook.catch(ignore).then(() => this.#lookNow());
    return this.#nextLook;
  }

  async #lookNow(): Promise<void> {
    const users = [...this.#asked].filter((user) => this.#locals.has(user));
    this.#asked = new Set();
    this.#nextLook = null;
    while (users.length > 0) {
      const some = users.splice(0, maxUsersAtOnce);
      try {
        const found = await this.#options.store.channels.of(some);
        for (const user of some) this.#settle(user, new Set(found.get(user)));
      } catch (error) {
        this.#options.log.warn({ err: error }, 'could not read which conversations to listen to, trying again');
        for (const user of [...some, ...users]) this.#asked.add(user); // for the next look, at the latest the timer's
        throw error;
      }
    }
  }

  /** As if a hint of a membership had come: it is read anew what this user needs. */
  refresh(user: UserId): void {
    if (this.#locals.has(user)) this.#look(user).catch(ignore); // it has been logged
  }

  /** Heals a switch whose announcement was lost, say with the node that had made it, and looks that failed. */
  async #lookForSwitches(): Promise<void> {
    try {
      const users = [...this.#locals.keys()];
      const switched = users.length === 0 ? [] : await this.#options.store.channels.switched(users);
      for (const user of [...switched, ...this.#asked]) this.refresh(user);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not look for conversations that were switched');
    }
  }

  #settle(user: UserId, convs: ReadonlySet<ConvId>): void {
    const local = this.#locals.get(user);
    if (!local) return;
    for (const conv of [...local.rooms.keys()]) if (!convs.has(conv)) this.#leave(user, local, conv);
    for (const conv of convs) if (!local.rooms.has(conv)) this.#enter(user, local, conv);
  }

  #enter(user: UserId, local: Local, conv: ConvId): void {
    const room = this.#rooms.get(conv) ?? this.#open(conv);
    room.members.add(user);
    local.rooms.set(conv, room);
    room.listening.then(
      () => {
        // who subscribed before this was heard may have missed something; who is only about to begins with a resync anyway
        if (local.rooms.get(conv) === room) this.#resync([user], 'MODE');
      },
      (error: unknown) => {
        this.#options.log.warn({ err: error, conv }, 'the channel of a conversation does not answer, trying again');
        if (local.rooms.get(conv) === room) this.#leave(user, local, conv);
        if (this.#locals.get(user) === local) this.#asked.add(user);
      },
    );
  }

  #leave(user: UserId, local: Local, conv: ConvId): void {
    const room = local.rooms.get(conv);
    local.rooms.delete(conv);
    room?.members.delete(user);
    if (!room || room.members.size > 0) return;
    if (this.#rooms.get(conv) === room) this.#rooms.delete(conv);
    room.listening.then(stopListening, ignore);
    void room.arrived.return();
  }

  #open(conv: ConvId): Room {
    const arrived = new Mailbox({ metrics: this.#options.metrics });
    const room: Room = { members: new Set(), arrived, listening: this.#options.bus.listenToConv(conv, arrived) };
    this.#rooms.set(conv, room);
    void this.#passOn(room);
    return room;
  }

  /** One after the other, so that what waits meanwhile is merged and hints keep their order. */
  async #passOn({ members, arrived }: Room): Promise<void> {
    for await (const item of arrived) {
      try {
        if (item.kind === 'resync') this.#resync(members, item.reason);
        if (item.kind === 'message') await this.#tell(members, item);
      } catch (error) {
        this.#options.log.warn({ err: error }, 'a hint of a conversation could not be passed on');
        this.#resync(members, 'BUS');
      }
    }
  }

  async #tell(members: ReadonlySet<UserId>, hint: MessageHint): Promise<void> {
    const audience = await this.#options.store.channels.mayHear(hint.conv, hint.seq, [...members]);
    for (const user of audience) for (const { sink } of this.#locals.get(user)?.subscribers ?? []) sink.hint(hint);
  }

  #resync(users: Iterable<UserId>, reason: ResyncReason): void {
    for (const user of [...users]) {
      for (const { sink, live } of this.#locals.get(user)?.subscribers ?? []) if (live) sink.resync(reason);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    for (const [user, local] of [...this.#locals]) {
      for (const conv of [...local.rooms.keys()]) this.#leave(user, local, conv);
    }
    return Promise.resolve();
  }
}

/** A conversation of the user was switched, or the user's own membership of one may have begun or ended. */
const tellsOfMembership = (hint: BusHint): boolean =>
  hint.kind === 'mode' || ((hint.kind === 'message' || hint.kind === 'conv') && hint.change !== null);
const stopListening = (listening: Listening): void => {
  listening.stop();
};
const ignore = (): void => undefined;

// The contract of the hint bus: small facts about one user or one conversation, from the node where they happened to every
// node that listens for that user or to that conversation. Two implementations (memory, redis), one contract suite.
import type { BusHint, ConvId, MessageHint, ResyncReason, SignalHint, UserId } from '../model.js';

/** Receives what one channel of the bus brings. Both calls must return at once and must not throw. */
export interface HintSink {
  hint(hint: BusHint): void;
  /** hints may have been lost since the last call (H3): everything must be looked at again */
  resync(reason: ResyncReason): void;
}

/** One sink's listening; disposing it is final and returns at once. */
export interface Listening {
  stop(): void;
}

export interface HintBus extends AsyncDisposable {
  /** 'down' while hints cannot travel between nodes; a bus in process is always 'up'. */
  readonly state: 'up' | 'down';
  /** Tells every sink of these users, on every node, this node's own included (H6). Never throws, never waits (H1). */
  publish(users: readonly UserId[], hint: BusHint): void;
  /** One message for all nodes that listen to its conversation, with the promises of publish (H7). */
  publishToConv(hint: MessageHint): void;
  /** One message for every node: whoever is connected to it. */
  publishToAll(hint: SignalHint): void;
  /**
   * Resolves once the bus has acknowledged that it listens (H2): whatever is published after that reaches the sink, or
   * the sink is told to resync. Rejects when the bus cannot acknowledge in time.
   */
  listen(user: UserId, sink: HintSink): Promise<Listening>;
  /** The same for what is published to a conversation. Who of its members may know is for the listener to tell (H7). */
  listenToConv(conv: ConvId, sink: HintSink): Promise<Listening>;
  /** The same for what is published to all. */
  listenToAll(sink: HintSink): Promise<Listening>;
  /**
   * Which life of the database the hints are about (L8). A life after the first resyncs every sink with RESTORED and answers
   * true; the present one changes nothing. Hints of another database are not heard, those of a node that has not noticed
   * the new life yet are.
   */
  enter(generation: string): boolean;
  /** Live numbers for tests and metrics: a closed connection leaves none behind. */
  stats(): { readonly sinks: number; readonly channels: number };
}

/** What a bus says about itself; a pino logger fits. */
export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

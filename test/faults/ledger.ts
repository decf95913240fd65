// What the clients were promised: every operation that was acknowledged, and how often one had to be repeated. Later the
// service is held to it.

export type Operation = 'send' | 'markRead' | 'ack' | 'mute' | 'recall';

export interface SentRow {
  readonly conv: string;
  readonly user: string;
  /** null until it was acknowledged */
  seq: number | null;
  recalled: boolean;
}

const key = (...parts: readonly string[]) => parts.join(' ');

export class Ledger {
  readonly acknowledged: Record<Operation, number> = { send: 0, markRead: 0, ack: 0, mute: 0, recall: 0 };
  /** Attempts that ended without an answer or with a retryable error, by what was seen. */
  readonly repeated: Record<string, number> = {};
  /** What no client should ever see. */
  readonly violations: string[] = [];
  readonly sent = new Map<string, SentRow>();
  readonly #read = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #muted = new Map<string, boolean>();

  repeats(why: string): void {
    this.repeated[why] = (this.repeated[why] ?? 0) + 1;
  }

  sentAt(clientId: string, seq: number): void {
    this.acknowledged.send++;
    const row = this.sent.get(clientId);
    if (!row) throw new Error(`nobody sent ${clientId}`);
    if (row.seq !== null && row.seq !== seq) this.violations.push(`L3: ${clientId} was ${row.seq} and is ${seq}`);
    row.seq = seq;
  }

  readUpTo(user: string, conv: string, asked: number, answered: number): void {
    this.acknowledged.markRead++;
    if (answered < asked)
      this.violations.push(`R1: ${user} asked to read ${asked} of ${conv}, the answer is ${answered}`);
    raise(this.#read, key(user, conv), answered);
  }

  deliveredUpTo(device: string, conv: string, asked: number, answered: number): void {
    this.acknowledged.ack++;
    if (answered < asked) this.violations.push(`D1: ${device} acked ${asked} of ${conv}, the answer is ${answered}`);
    raise(this.#delivered, key(device, conv), answered);
  }

  muted(user: string, conv: string, isMuted: boolean): void {
    this.acknowledged.mute++;
    this.#muted.set(key(user, conv), isMuted);
  }

  recalled(clientId: string): void {
    this.acknowledged.recall++;
    const row = this.sent.get(clientId);
    if (row) row.recalled = true;
  }

  /** What the service shows one device of a conversation, against what had been promised. */
  check(user: string, device: string, conv: ShownConv): string[] {
    const wrong: string[] = [];
    const read = this.#read.get(key(user, conv.id)) ?? 0;
    const delivered = this.#delivered.get(key(device, conv.id)) ?? 0;
    const isMuted = this.#muted.get(key(user, conv.id));
    if (conv.read < read) wrong.push(`R3: ${user} had read ${read} of ${conv.id}, now ${conv.read}`);
    if (conv.delivered < delivered)
      wrong.push(`D1: ${device} had acked ${delivered} of ${conv.id}, now ${conv.delivered}`);
    if (isMuted !== undefined && conv.muted !== isMuted) wrong.push(`${user} had muted ${conv.id}: ${String(isMuted)}`);
    return wrong;
  }
}

export interface ShownConv {
  readonly id: string;
  readonly head: number;
  readonly read: number;
  readonly unread: number;
  readonly delivered: number;
  readonly muted: boolean;
}

function raise(map: Map<string, number>, at: string, value: number): void {
  map.set(at, Math.max(map.get(at) ?? 0, value));
}

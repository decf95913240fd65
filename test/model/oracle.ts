// What every answer must be, by counting raw events: the definition U1 taken literally. It knows no ordinals. A log is fed
// each event once, in seq order, as a member who never leaves sees it, and forgets none: retention only raises `min`.
import type { EventRow } from '../support/world.js';

interface Entry {
  readonly seq: number;
  readonly sender: string | null;
  readonly counts: boolean;
  readonly recallable: boolean;
  readonly clientId: string | null;
  recalledBy: number | null;
}
interface Period {
  readonly from: number;
  to: number;
}

export class Log {
  readonly entries: Entry[] = [];
  readonly #periods = new Map<string, Period[]>();
  readonly #read = new Map<string, number>();
  min = 1;
  /** whether those who join now see what was before (M2) */
  visible: boolean;

  constructor(visible: boolean) {
    this.visible = visible;
  }

  get head(): number {
    return this.entries.length;
  }

  add(event: EventRow): void {
    if (event.seq !== this.head + 1) throw new Error(`L1: seq ${String(event.seq)} after ${String(this.head)}`);
    const counts = event.kind === 'MESSAGE';
    const { seq, clientId } = event;
    this.entries.push({
      seq,
      clientId,
      sender: event.sender?.id ?? null,
      counts,
      recallable: counts,
      recalledBy: null,
    });
    const users = (event.content?.['users'] ?? []) as string[];
    switch (event.contentType) {
      case 'GROUP_CREATE':
      case 'MEMBER_INVITE':
      case 'MEMBER_ENTER':
        for (const user of users) this.#enter(user, seq);
        break;
      case 'MEMBER_QUIT':
      case 'MEMBER_KICK':
        for (const user of users) this.#exit(user, seq);
        break;
      case 'RECALL':
        this.#recall(event.target?.seq ?? 0, seq);
        break;
    }
  }

  #enter(user: string, seq: number): void {
    if (this.isJoined(user)) throw new Error(`${user} joined twice`);
    const past = this.#periods.get(user) ?? [];
    this.#periods.set(user, this.visible ? [{ from: 1, to: Infinity }] : [...past, { from: seq, to: Infinity }]);
    if (this.visible) this.raiseRead(user, seq - 1);
  }

  #exit(user: string, seq: number): void {
    const last = this.#periods.get(user)?.at(-1);
    if (last?.to !== Infinity) throw new Error(`${user} left twice`);
    last.to = seq;
  }

  #recall(target: number, seq: number): void {
    const entry = this.entries[target - 1];
    if (!entry?.recallable || entry.recalledBy !== null) throw new Error(`seq ${String(target)} cannot be recalled`);
    entry.recalledBy = seq;
  }

  isKnown(user: string): boolean {
    return this.#periods.has(user);
  }

  isJoined(user: string): boolean {
    return this.#periods.get(user)?.at(-1)?.to === Infinity;
  }

  headFor(user: string): number {
    return Math.min(this.head, this.#periods.get(user)?.at(-1)?.to ?? 0);
  }

  sees(user: string, seq: number): boolean {
    return this.#periods.get(user)?.some(({ from, to }) => seq >= from && seq <= to) ?? false;
  }

  /** Borders of what the user may see: the interesting positions. */
  edges(user: string): number[] {
    return (this.#periods.get(user) ?? []).flatMap(({ from, to }) => [from, Math.min(to, this.head)]);
  }

  visibleAfter(user: string, after: number): Entry[] {
    return this.entries.filter(({ seq }) => seq > after && seq >= this.min && this.sees(user, seq));
  }

  read(user: string): number {
    return this.#read.get(user) ?? 0;
  }

  raiseRead(user: string, seq: number): void {
    this.#read.set(user, Math.max(this.read(user), seq));
  }

  unreadSeqs(user: string): number[] {
    return this.visibleAfter(user, this.read(user))
      .filter(({ counts, recalledBy, sender }) => counts && recalledBy === null && sender !== user)
      .map(({ seq }) => seq);
  }

  /** What sync must answer to a cursor that is not 0 (S3). */
  resetAt(user: string, after: number): 'AHEAD' | 'TRIMMED' | null {
    if (after === 0) return null;
    if (after > this.headFor(user)) return 'AHEAD';
    return this.entries.some(({ seq }) => seq > after && seq < this.min && this.sees(user, seq)) ? 'TRIMMED' : null;
  }
}

// Which changes of its online users' own state this node has heard of, by change number, so that the redelivery scan finds
// those that it has not (H5). Bounded for each user: what is too much to remember becomes a resync.
import type { BusHint, UserId } from '../model.js';

const maxHeard = 1_000;
const maxMissed = 200;

interface Entry {
  listeners: number;
  /** everything up to here was heard, redelivered, or is older than the listening; null until that is known */
  base: number | null;
  /** the user's number at the last scan: what lies up to here has had an interval to be heard */
  seen: number | null;
  /** heard, above base: without a gap there is nothing in it */
  readonly heard: Set<number>;
  overflown: boolean;
  readonly ready: Promise<void>;
}
type Numbers = ReadonlyMap<UserId, number>;

export interface Missed {
  readonly user: UserId;
  /** ascending; null: too many to name, everything must be looked at again */
  readonly numbers: readonly number[] | null;
}

export class HeardChanges {
  readonly #entries = new Map<UserId, Entry>();
  readonly #numbersOf: (users: readonly UserId[]) => Promise<Numbers>;

  constructor(numbersOf: (users: readonly UserId[]) => Promise<Numbers>) {
    this.#numbersOf = numbersOf;
  }

  get users(): UserId[] {
    return [...this.#entries.keys()];
  }

  /**
   * To be called as soon as the bus listens for the user, and `end` once for each call. Resolves when it is known where the
   * listening began, which must be before the client reads its state: what changes later and is lost will be missed.
   */
  begin(user: UserId): Promise<void> {
    const known = this.#entries.get(user);
    if (known) {
      known.listeners++;
      return known.ready;
    }
    const ready = this.#numbersOf([user]).then((numbers) => {
      rise(entry, numbers.get(user) ?? 0);
    });
    const entry: Entry = { listeners: 1, base: null, seen: null, heard: new Set(), overflown: false, ready };
    this.#entries.set(user, entry);
    return ready;
  }

  end(user: UserId): void {
    const entry = this.#entries.get(user);
    if (entry && --entry.listeners === 0) this.#entries.delete(user);
  }

  hint(user: UserId, hint: BusHint): void {
    const entry = this.#entries.get(user);
    if (!entry || !('change' in hint) || hint.change === null || hint.change <= (entry.base ?? -1)) return;
    entry.heard.add(hint.change);
    lift(entry);
    if (entry.heard.size <= maxHeard) return;
    entry.heard.clear();
    entry.overflown = true;
  }

  /** Every subscriber of the user looks at everything again, and finds what the last scan saw. */
  resync(user: UserId): void {
    const entry = this.#entries.get(user);
    if (entry) rise(entry, entry.seen);
  }

  /** Numbers may be lower now, and everybody has been told to look again: the next scan begins anew. */
  restored(): void {
    for (const entry of this.#entries.values()) {
      entry.heard.clear();
      entry.base = entry.seen = null;
    }
  }

  /** What was there at the scan before this one and is still unheard. */
  missed(): Missed[] {
    return [...this.#entries].flatMap(([user, entry]): Missed[] => {
      const { base, seen, heard } = entry;
      if (base === null) return [];
      entry.overflown ||= seen !== null && seen - base > heard.size + maxMissed;
      if (entry.overflown) return [{ user, numbers: null }];
      const numbers: number[] = [];
      for (let n = base + 1; n <= (seen ?? base); n++) if (!heard.has(n)) numbers.push(n);
      return numbers.length > 0 ? [{ user, numbers }] : [];
    });
  }

  /** Once what was missed has been redelivered. `now`: the users' numbers, read before that. */
  advance(now: Numbers): void {
    for (const [user, number] of now) {
      const entry = this.#entries.get(user);
      if (!entry) continue;
      rise(entry, entry.overflown || entry.base === null ? number : entry.seen);
      entry.overflown = false;
      entry.seen = number;
    }
  }
}

function rise(entry: Entry, to: number | null): void {
  if (to === null || to <= (entry.base ?? -1)) return;
  entry.base = to;
  for (const number of entry.heard) if (number <= to) entry.heard.delete(number);
  lift(entry);
}

/** What is heard without a gap need not be remembered one by one. */
function lift(entry: Entry): void {
  if (entry.base === null) return;
  while (entry.heard.delete(entry.base + 1)) entry.base++;
}

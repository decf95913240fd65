// The guard of a client's cache: answers over HTTP and hints over a socket overtake each other, so a snapshot of a
// conversation is taken only if it is not older than the one that is shown. Positions only rise, hence (head, read) tells.

export interface Marks {
  readonly head: number;
  readonly read: number;
}

/**
 * `older`: drop it. `unlike`: it knows one position better and the other worse, which no moment of the database did at the
 * same time as the known one's unread: keep what is shown and ask for conv(id) again.
 */
export type Age = 'newer' | 'older' | 'unlike';

export function ageOf(seen: Marks, known: Marks | undefined): Age {
  if (known === undefined || (seen.head >= known.head && seen.read >= known.read)) return 'newer';
  return seen.head <= known.head && seen.read <= known.read ? 'older' : 'unlike';
}

/** The newest snapshot of each conversation. */
export class Newest<T extends Marks> {
  readonly #known = new Map<string, T>();

  get(conv: string): T | undefined {
    return this.#known.get(conv);
  }

  take(conv: string, seen: T): Age {
    const age = ageOf(seen, this.#known.get(conv));
    if (age === 'newer') this.#known.set(conv, seen);
    return age;
  }
}

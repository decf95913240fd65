// A client of the changes feed: what it holds of its own state, and how far it has come.
import type { Actor, ChangePage, ConvRow } from './world.js';

/** What of a conversation is the user's own state, and so comes with the feed; head and unread come with the log. */
export interface OwnPart {
  readonly id: string;
  readonly read: number;
  readonly joined: boolean;
  readonly muted: boolean;
}
export const ownPart = ({ id, read, joined, muted }: ConvRow): OwnPart => ({ id, read, joined, muted });
export const byId = (rows: Iterable<OwnPart>): OwnPart[] => [...rows].toSorted((a, b) => (a.id < b.id ? -1 : 1));

export class FeedClient {
  readonly #held: Map<string, OwnPart>;
  cursor: string | null;

  constructor(cursor: string | null = null, held: ReadonlyMap<string, OwnPart> = new Map()) {
    this.cursor = cursor;
    this.#held = new Map(held);
  }

  /** The same client at this moment: what a device that goes offline now has. */
  copy(): FeedClient {
    return new FeedClient(this.cursor, this.#held);
  }

  get state(): OwnPart[] {
    return byId(this.#held.values());
  }

  apply({ items, cursor, reset }: ChangePage): void {
    if (reset) this.#held.clear();
    for (const { conv } of items) this.#held.set(conv.id, ownPart(conv));
    this.cursor = cursor;
  }

  /** Page after page, until there is no more. */
  async catchUp(actor: Actor, first?: number): Promise<void> {
    for (let hasMore = true; hasMore;) {
      const page = await actor.changes(this.cursor, first);
      this.apply(page);
      ({ hasMore } = page);
    }
  }
}

/** The same from a fresh look at everything. */
export async function freshState(actor: Actor): Promise<OwnPart[]> {
  return byId((await actor.convs({ first: 1_000, includeLeft: true })).nodes.map(ownPart));
}

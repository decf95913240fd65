// What a client believes of contacts and requests when all it does is apply the feed: after every step of a random history,
// from any cursor it has ever held, it equals what the lists say (C1–C3). TIDEMARK_SEED repeats a run.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import stringify from 'safe-stable-stringify';
import { expect, test } from 'vitest';
import { act, contactFields, contactsOf, requestFields, requestsOf, update } from '../support/contacts.js';
import { group, joinRequestsOf } from '../support/groups.js';
import { outcomeOf } from '../support/outcome.js';
import { fresh, startWorld, type Actor, type World } from '../support/world.js';

const seed = Number(process.env['TIDEMARK_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env['TIDEMARK_RUNS'] ?? 2);
const users = 3;

/** How often each comes: becoming contacts takes two to agree. */
const verbs = {
  requestContact: 6,
  acceptContact: 5,
  refuseContact: 1,
  withdrawContact: 1,
  updateContact: 5,
  deleteContact: 2,
  blockContact: 1,
  unblockContact: 2,
  requestJoin: 4,
  addMembers: 2,
  approveJoin: 2,
  refuseJoin: 1,
  makeAdmin: 2,
  unmakeAdmin: 1,
  leave: 3,
} as const;
type Verb = keyof typeof verbs;
interface Move {
  readonly verb: Verb;
  readonly by: number;
  readonly on: number;
}
const move: fc.Arbitrary<Move> = fc.record({
  verb: fc.oneof(...Object.entries(verbs).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb as Verb) }))),
  by: fc.nat({ max: users - 1 }),
  on: fc.nat({ max: users - 1 }),
});
/** One after the other, or all at once. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(move) },
  { weight: 1, arbitrary: fc.array(move, { minLength: 2, maxLength: 4 }) },
);

/** Rows by what they are of, as the feed has told them. */
class Believed {
  readonly rows: Map<string, unknown>;
  cursor: string | null;

  constructor(rows: Iterable<[string, unknown]> = [], cursor: string | null = null) {
    this.rows = new Map(rows);
    this.cursor = cursor;
  }

  copy(): Believed {
    return new Believed(this.rows, this.cursor);
  }

  async catchUp(actor: Actor, first: number): Promise<void> {
    const document = `query ($after: String, $first: Int) { changes(after: $after, first: $first) { cursor hasMore reset items {
      __typename ... on ConvChange { conv { id joined muted read unread } } ... on ContactChange { contact { ${contactFields} } }
      ... on ContactRequestChange { contactRequest { id ${requestFields} } }
      ... on JoinRequestChange { id joinRequest { conv user { id } inviter { id } state text } } } } }`;
    type Item = { readonly __typename: string; readonly id?: string } & Readonly<
      Record<string, { readonly id: string } | null>
    >;
    type Page = { changes: { cursor: string; hasMore: boolean; reset: boolean; items: Item[] } };
    for (;;) {
      const { changes } = await actor.ask<Page>(document, { after: this.cursor, first });
      assert.equal(changes.reset, false);
      for (const { __typename: kind, id, ...row } of changes.items) {
        const [value] = Object.values(row);
        this.rows.set(`${kind} ${id ?? value?.id ?? ''}`, value);
      }
      this.cursor = changes.cursor;
      if (!changes.hasMore) return;
    }
  }

  of(kind: string): object[] {
    return [...this.rows].flatMap(([key, row]) => (key.startsWith(`${kind} `) && row ? [row] : []));
  }
}

const sorted = (rows: readonly unknown[]) => rows.map((row) => stringify(row) ?? '').toSorted();

class Story {
  readonly actors: Actor[] = [];
  readonly ids: string[] = [];
  /** for each user what the client believes now, and what it believed before */
  readonly believed: Believed[][] = [];
  conv = '';

  async begin(world: World): Promise<void> {
    for (let n = 0; n < users; n++) {
      this.ids.push(fresh('u'));
      await world.users(this.ids[n] ?? '');
      this.actors.push(await world.device(this.ids[n] ?? ''));
      this.believed.push([new Believed()]);
    }
    this.conv = (await this.actor(0).createConv({ members: [this.id(1)], joinPolicy: 'APPROVAL' })).conv.id;
  }

  actor(n: number): Actor {
    const found = this.actors[n];
    if (!found) throw new Error('begin first');
    return found;
  }
  id(n: number): string {
    return this.ids[n] ?? '';
  }

  do({ verb, by, on }: Move): Promise<unknown> {
    const [actor, user, conv] = [this.actor(by), this.id(on), this.conv];
    switch (verb) {
      case 'updateContact':
        return update(actor, user, { remark: fresh(), pinned: by > on });
      case 'requestJoin':
        return group(actor, 'requestJoin', { conv });
      case 'addMembers':
        return actor.addMembers(conv, [user]);
      case 'approveJoin':
      case 'refuseJoin':
        return group(actor, verb, { conv, user });
      case 'makeAdmin':
      case 'unmakeAdmin':
        return group(this.actor(0), 'setRole', { conv, user, role: verb === 'makeAdmin' ? 'ADMIN' : 'MEMBER' });
      case 'leave':
        return actor.leave(conv);
      case 'requestContact':
      case 'acceptContact':
      case 'refuseContact':
      case 'withdrawContact':
      case 'deleteContact':
      case 'blockContact':
      case 'unblockContact':
        return act(actor, verb, user);
    }
  }

  /** Every client, and every earlier self of it, catches up in small pages and is right. */
  async compare(first: number): Promise<void> {
    const compareOne = async (history: Believed[], n: number) => {
      const actor = this.actor(n);
      const now = (history.at(-1) ?? new Believed()).copy();
      await now.catchUp(actor, first);
      const [held, blocked] = [await contactsOf(actor), await contactsOf(actor, true)];
      const requests = [...(await requestsOf(actor)), ...(await requestsOf(actor, { sent: true }))];
      const truth = {
        held: sorted(held),
        blocked: sorted(blocked),
        requests: sorted(requests),
        joining: sorted(
          (await joinRequestsOf(actor)).map(({ conv, user, inviter, state, text }) => ({
            conv,
            user,
            inviter,
            state,
            text,
          })),
        ),
        convs: sorted(
          (await actor.convs({ includeLeft: true })).nodes.map(({ id, joined, muted, read, unread }) => ({
            id,
            joined,
            muted,
            read,
            unread,
          })),
        ),
      };
      assert.deepEqual(shownBy(now), truth);
      if (history.length % 8 === 0) {
        for (const earlier of history) {
          const late = earlier.copy();
          await late.catchUp(actor, first);
          assert.deepEqual(shownBy(late), truth);
        }
      }
      history.push(now);
    };
    await Promise.all(this.believed.map(compareOne));
  }
}

function shownBy(client: Believed) {
  const contacts = client.of('ContactChange') as { readonly active: boolean; readonly blocked: boolean }[];
  const requests = client.of('ContactRequestChange') as { readonly id: string }[];
  return {
    held: sorted(contacts.filter(({ active }) => active)),
    blocked: sorted(contacts.filter(({ blocked }) => blocked)),
    requests: sorted(requests.map(({ id: _, ...request }) => request)),
    joining: sorted(client.of('JoinRequestChange')),
    convs: sorted(client.of('ConvChange')),
  };
}

test('[C1] [C2] [C3] [K1] [G5] random histories of contacts and requests: the feed leads from any cursor to what the lists say', async () => {
  console.log(`seed ${String(seed)} (TIDEMARK_SEED=${String(seed)} repeats it)`);
  await using world = await startWorld();
  const tally = new Map<string, number>();
  const history = fc.record({
    steps: fc.array(step, { minLength: 30, maxLength: 30, size: 'max' }),
    first: fc.constantFrom(1, 2, 3, 50),
  });
  const property = fc.asyncProperty(history, async ({ steps, first }) => {
    const story = new Story();
    await story.begin(world);
    for (const [at, moves] of steps.entries()) {
      const outcomes = await Promise.all(moves.map(async (each) => outcomeOf(story.do(each))));
      for (const [nth, outcome] of outcomes.entries()) {
        assert.notEqual(outcome, 'INTERNAL_SERVER_ERROR');
        const what = `${moves[nth]?.verb ?? ''} ${String(outcome)}`;
        tally.set(what, (tally.get(what) ?? 0) + 1);
      }
      if (at % 2 === 1) await story.compare(first);
    }
  });
  await fc.assert(property, { seed, numRuns: runs, endOnFailure: true });
  expect(tally.get('requestContact ok')).toBeGreaterThan(0);
}, 600_000);

// One random history: users with two devices each, conversations that they join and leave, told through the API and checked
// after every step against the oracle. A witness who never leaves brings each event to the oracle.
import assert from 'node:assert/strict';
import { fresh, Refused, type Actor, type ConvRow, type World } from '../support/world.js';
import { byId, FeedClient } from '../support/feed.js';
import { someoneWaits, type FailpointGate } from './failpoint-gate.js';
import { Log } from './oracle.js';
import { prepare, type Prepared } from './operations.js';
import type { Move, Step } from './steps.js';

export interface DeviceState {
  actor: Actor;
  readonly id: string;
  readonly cursors: Map<string, number>;
  installId: string | null;
  /** the credential of the install before this one */
  old: Actor | null;
}
export interface ConvState {
  readonly id: string;
  readonly log: Log;
  readonly muted: Set<string>;
}
export interface SentKey {
  readonly user: string;
  readonly conv: string;
  readonly clientId: string;
  readonly text: string;
  readonly seq: number;
}

export class Story {
  readonly world: World;
  readonly users: string[] = [];
  readonly devices = new Map<string, DeviceState[]>();
  readonly convs: ConvState[] = [];
  readonly keys: SentKey[] = [];
  readonly tally: Map<string, number>;
  readonly #gate: FailpointGate;
  /** each user's own part, kept up by the changes feed, and what it was at earlier moments (C2) */
  readonly #feeds = new Map<string, FeedClient>();
  readonly #saved: { readonly user: string; readonly feed: FeedClient }[] = [];
  #steps = 0;
  #witness: Actor | null = null;

  constructor(world: World, gate: FailpointGate, tally: Map<string, number>) {
    this.world = world;
    this.#gate = gate;
    this.tally = tally;
  }

  async begin(userCount: number, convCount: number): Promise<void> {
    const witness = fresh('wit');
    this.users.push(...Array.from({ length: userCount }, () => fresh('u')));
    await this.world.users(witness, ...this.users);
    this.#witness = await this.world.device(witness);
    for (const user of this.users) {
      const ids = [fresh('d'), fresh('d')];
      const actors = await Promise.all(ids.map((id) => this.world.device(user, id)));
      this.devices.set(
        user,
        actors.map((actor, at) => ({ actor, id: ids[at] ?? '', cursors: new Map(), installId: null, old: null })),
      );
    }
    for (let n = 0; n < convCount; n++) {
      const historyVisible = n % 2 === 1;
      const { conv } = await this.#witness.createConv({ historyVisible, joinPolicy: 'OPEN' });
      this.convs.push({ id: conv.id, log: new Log(historyVisible), muted: new Set() });
    }
    await this.#learn();
  }

  get owner(): Actor {
    if (!this.#witness) throw new Error('begin first');
    return this.#witness;
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  async take(step: Step): Promise<void> {
    if ('first' in step) await this.#together(step.first, step.rest, step.point);
    else await this.#alone(step);
    await this.#learn();
    await this.#compare();
    if (++this.#steps % 3 === 0) await this.#follow();
  }

  /** From every cursor that was ever saved the feed leads to the state of now (C1, C2, C3). */
  async end(): Promise<void> {
    for (const { user, feed } of [
      ...this.#saved,
      ...this.users.map((each) => ({ user: each, feed: new FeedClient() })),
    ]) {
      const [device] = this.devices.get(user) ?? [];
      if (!device) continue;
      await feed.catchUp(device.actor, 1 + (this.#steps % 3));
      const expected = this.convs.filter(({ log }) => log.isKnown(user)).map((conv) => ownPartOf(conv, user));
      assert.deepEqual(feed.state, byId(expected), `the feed of ${user}`);
      this.count('feeds compared');
    }
  }

  /** One user reads one page; now and then a copy of what they hold is put aside. */
  async #follow(): Promise<void> {
    const user = this.users[this.#steps % this.users.length] ?? '';
    const device = this.devices.get(user)?.[this.#steps % 2];
    const feed = this.#feeds.get(user) ?? new FeedClient();
    if (!device) return;
    feed.apply(await device.actor.changes(feed.cursor, 1 + (this.#steps % 2)));
    this.#feeds.set(user, feed);
    if (this.#steps % 4 === 0) this.#saved.push({ user, feed: feed.copy() });
  }

  async #alone(move: Move): Promise<void> {
    const prepared = prepare(this, move);
    const answer = await outcomeOf(prepared);
    this.count(`${move.kind}:${answer.code}`);
    assert.deepEqual(answer.value, prepared.expected(), prepared.title);
    prepared.apply(answer.value);
  }

  /** The first holds its locks at the failpoint until another one waits for them: the hard interleavings. */
  async #together(first: Move, rest: readonly Move[], point: 'after lock' | 'before commit'): Promise<void> {
    const stop = this.#gate.stopAt(point);
    const leading = prepare(this, first);
    const others = rest.map((move) => prepare(this, move));
    const firstDone = outcomeOf(leading);
    await Promise.race([stop.reached, firstDone]);
    stop.disarm();
    let over = false;
    const restDone = Promise.all(others.map(outcomeOf)).finally(() => (over = true));
    restDone.catch(() => undefined); // told below
    // it ends when the others do, if none of them has to wait
    await someoneWaits(this.world.app.databaseUrl, () => over)
      // what has drawn its number and not committed must not be passed over; more than these wait for the pool themselves
      .then(() => (rest.length <= 3 ? this.#follow() : undefined))
      .finally(stop.letGo);
    const answers = (await Promise.all([firstDone, restDone])).flat();
    [leading, ...others].forEach((prepared, at) => {
      const answer = answers[at];
      if (!answer) return;
      this.count(`together ${prepared.kind}:${answer.code}`);
      prepared.applyUnordered(answer.value);
    });
  }

  /** Brings what is new in the logs to the oracle. */
  async #learn(): Promise<void> {
    for (let complete = false; !complete;) {
      const page = await this.owner.sync(this.convs.map(({ id, log }) => ({ conv: id, after: log.head })));
      page.items.forEach(({ events }, at) => {
        for (const event of events) this.convs[at]?.log.add(event);
      });
      ({ complete } = page);
    }
  }

  /** Every user's conversations, badge and audit, on one device each time, against plain counting (U1–U6, M1, D1, R1). */
  async #compare(): Promise<void> {
    await Promise.all(
      this.users.map(async (user, at) => {
        const device = this.devices.get(user)?.[(this.keys.length + at) % 2];
        if (!device) return;
        const known = this.convs.filter(({ log }) => log.isKnown(user));
        const some = known[this.keys.length % Math.max(1, known.length)];
        const { convs, badge, unreadAudit } = await device.actor.look(some?.id ?? null);
        const rows = known.map((conv) => this.#expectedRow(conv, user, device));
        const sorted = (list: readonly { id: string }[]) => list.toSorted((a, b) => (a.id < b.id ? -1 : 1));
        assert.deepEqual(sorted(convs.nodes.map(shown)), sorted(rows), `convs of ${user}`);
        const open = rows.filter(({ joined }) => joined);
        const total = (muted: boolean) =>
          open.filter((row) => row.muted === muted).reduce((sum, row) => sum + row.unread, 0);
        assert.deepEqual([badge.unread, badge.mutedUnread], [total(false), total(true)], `badge of ${user}`);
        if (some) assert.deepEqual(unreadAudit?.seqs, some.log.unreadSeqs(user), `audit of ${user}`);
        this.count('compared');
        this.#countPaths(user, known);
      }),
    );
  }

  #expectedRow(conv: ConvState, user: string, device: DeviceState) {
    const { id, log } = conv;
    return {
      ...ownPartOf(conv, user),
      head: log.headFor(user),
      minSeq: log.isJoined(user) ? log.min : Math.min(log.min, log.headFor(user) + 1),
      delivered: device.cursors.get(id) ?? 0,
      unread: log.unreadSeqs(user).length,
    };
  }

  /** How often the rare paths were taken with something to count: a run that never does proves little. */
  #countPaths(user: string, known: readonly ConvState[]): void {
    for (const { log } of known) {
      const seqs = log.unreadSeqs(user);
      if (seqs.length === 0) continue;
      const read = log.read(user);
      this.count('path: unread');
      if (read < log.min - 1) this.count('path: floor above read');
      if (!log.isJoined(user)) this.count('path: former member');
      const above = log.visibleAfter(user, read);
      if (above.some(({ sender, counts }) => counts && sender === user)) this.count('path: own above read');
      if (above.some(({ recalledBy }) => recalledBy !== null)) this.count('path: recalled above read');
      if (log.edges(user).filter((edge) => edge > read && edge < (seqs.at(-1) ?? 0)).length > 2)
        this.count('path: several periods');
    }
  }
}

const ownPartOf = ({ id, log, muted }: ConvState, user: string) => ({
  id,
  read: log.read(user),
  joined: log.isJoined(user),
  muted: muted.has(user),
});

const shown = ({ id, head, minSeq, delivered, read, unread, joined, muted }: ConvRow) => {
  assert.ok(unread >= 0 && read <= head && delivered <= head, 'U2 R1 D1');
  return { id, head, minSeq, delivered, read, unread, joined, muted };
};

async function outcomeOf(prepared: Prepared): Promise<{ code: string; value: unknown }> {
  try {
    return { code: 'ok', value: await prepared.act() };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const code = String(error.code);
    assert.notEqual(code, 'INTERNAL_SERVER_ERROR', `${prepared.title}: ${error.message}`);
    return { code, value: { refused: code } };
  }
}

// The redelivery scan: finds by itself, on every node, what its online devices were not told, and tells them (H5). It is what
// heals a node that died between a commit and its hints. A few statements per interval, whatever the number of devices.
import { performance } from 'node:perf_hooks';
import { LRUCache } from 'lru-cache';
import type { DeviceId, Hint } from '../model.js';
import type { ChangedConv, ChangedRow, HintedEvent } from '../store/redelivery.js';
import type { ContentTypeName } from './content-types.js';
import type { Connection, Connections } from './connections.js';
import type { Deps } from './deps.js';
import type { Missed } from './heard-changes.js';
import { Recurring } from './recurring.js';

export interface RedeliveryOptions {
  readonly everyMs: number;
  /** how long a device may lack something before it is told again */
  readonly graceMs: number;
}

const maxRemembered = 50_000;
/** Rows of one user in one scan; beyond, one resync says it all. */
const maxChanged = 200;

export class Redelivery implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #connections: Connections;
  readonly #options: RedeliveryOptions;
  readonly #scans: Recurring;
  /** Each device is told of one head of a conversation once. */
  readonly #told = new LRUCache<string, number>({ max: maxRemembered });
  #scannedAt = performance.now();

  constructor(deps: Deps, connections: Connections, options: RedeliveryOptions) {
    this.#deps = deps;
    this.#connections = connections;
    this.#options = options;
    const { log } = deps;
    const { everyMs } = options;
    this.#scans = new Recurring(() => this.#scan(), { everyMs, log, failed: 'a scan for lost hints failed' });
  }

  /** A failed one is made up for by the next, which looks further back. */
  scan(): Promise<void> {
    return this.#scans.run();
  }

  async #scan(): Promise<void> {
    const open = this.#connections.all;
    if (open.length === 0) return;
    const { everyMs, graceMs } = this.#options;
    const begun = performance.now();
    // a change is looked at by the second scan after it, and a failed scan by the next
    const windowMs = graceMs + 2 * everyMs + (begun - this.#scannedAt);
    await this.#changes(open, windowMs);
    await this.#messages(open, windowMs);
    await this.#badges(windowMs);
    this.#scannedAt = begun;
  }

  async #changes(open: readonly Connection[], windowMs: number): Promise<void> {
    const { heard } = this.#connections;
    const { changes, redelivery } = this.#deps.store;
    const now = await changes.numbers(heard.users);
    const missed = heard.missed();
    const named = missed.flatMap(({ user, numbers }) => (numbers?.[0] === undefined ? [] : { user, from: numbers[0] }));
    const rows: (ChangedConv | ChangedRow)[] = [];
    if (named.length > 0) {
      rows.push(...(await redelivery.changed(named, maxChanged + 1, windowMs)));
      rows.push(...(await redelivery.changedRows(named, maxChanged + 1)));
    }
    const changed = groupsBy(rows, ({ user }) => user);
    const byUser = groupsBy(open, ({ viewer }) => viewer.user);
    for (const each of missed) this.#tellOfChanges(byUser.get(each.user) ?? [], each, changed.get(each.user) ?? []);
    heard.advance(now);
  }

  #tellOfChanges(
    connections: readonly Connection[],
    { user, numbers }: Missed,
    rows: readonly (ChangedConv | ChangedRow)[],
  ): void {
    if (numbers === null || rows.length > maxChanged) {
      for (const { sinks } of connections) for (const sink of sinks) sink.resync('BUS');
      this.#deps.metrics.hintRedelivered();
    } else {
      for (const row of lost(numbers, rows)) for (const hint of hintsOf(row)) this.#tell(connections, hint);
    }
    this.#deps.badges.refresh(user);
    this.#deps.channels.refresh(user); // a membership may have begun (H7)
  }

  async #messages(open: readonly Connection[], windowMs: number): Promise<void> {
    const byDevice = groupsBy(open, ({ viewer }) => viewer.device);
    const devices = open.map(({ viewer }) => viewer);
    const lagging = await this.#deps.store.redelivery.lagging(devices, windowMs, this.#options.graceMs);
    for (const { device, conv, conversationType, head, ...event } of lagging) {
      if (!this.#isNews(device, conv, head)) continue;
      this.#tell(byDevice.get(device) ?? [], messageHint({ conv, conversationType, head }, event, null));
    }
  }

  async #badges(windowMs: number): Promise<void> {
    const { badges, store } = this.#deps;
    const { shown } = badges;
    if (shown.length === 0) return;
    for (const user of await store.redelivery.staleBadges(shown, windowMs)) badges.refresh(user);
  }

  #isNews(device: DeviceId, conv: string, head: number): boolean {
    const key = `${device} ${conv}`;
    if ((this.#told.get(key) ?? 0) >= head) return false;
    this.#told.set(key, head);
    return true;
  }

  /** To these sockets alone: it is this node that has not heard. */
  #tell(connections: readonly Connection[], hint: Hint): void {
    for (const { sinks } of connections) for (const sink of sinks) sink.hint(hint);
    this.#deps.metrics.hintRedelivered();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scans[Symbol.asyncDispose]();
  }
}

function groupsBy<K, V>(values: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const group = groups.get(keyOf(value));
    if (group) group.push(value);
    else groups.set(keyOf(value), [value]);
  }
  return groups;
}

/**
 * The rows whose numbers were missed. A number that no row bears any more was of a row that has changed again since, with
 * perhaps another kind of change: every row with a larger number may be that one.
 */
function lost<Row extends { readonly change: number }>(numbers: readonly number[], rows: readonly Row[]): Row[] {
  const borne = new Set(rows.map(({ change }) => change));
  const [overwritten = Infinity] = numbers.filter((number) => !borne.has(number));
  const missed = new Set(numbers);
  return rows.filter(({ change }) => missed.has(change) || change > overwritten);
}

/** A row does not say which of its parts has changed: all of them are told, as they are now. */
function hintsOf(row: ChangedConv | ChangedRow): Hint[] {
  if ('about' in row) {
    const { about, change } = row;
    return [{ kind: 'change', conversationType: 'NONE', contentType: newsOf(row), about, change, originDevice: null }];
  }
  const { conv, conversationType, head, read, unread, change, event } = row;
  const about = { conv, conversationType, originDevice: null, change } as const;
  return [
    ...(event ? [messageHint({ conv, conversationType, head: event.seq }, event, change)] : []),
    { kind: 'read', ...about, read, unread, head },
    { kind: 'conv', ...about, contentType: 'MEMBER_SETTING_UPDATE' },
  ];
}

const answers = { PENDING: 'RECEIVED', ACCEPTED: 'APPROVED', REFUSED: 'REJECTED', WITHDRAWN: 'WITHDRAWN' } as const;

function newsOf({ about, state }: ChangedRow): ContentTypeName {
  switch (about.type) {
    case 'contact':
      return 'FRIEND_UPDATE';
    case 'contactRequest':
      return `FRIEND_REQUEST_${answers[state ?? 'WITHDRAWN']}`;
    case 'joinRequest':
      return `GROUP_REQUEST_${answers[state ?? 'WITHDRAWN']}`;
  }
}

function messageHint(
  place: Pick<ChangedConv, 'conv' | 'conversationType' | 'head'>,
  event: HintedEvent,
  change: number | null,
): Hint {
  return { kind: 'message', ...place, ...event, originDevice: null, change };
}

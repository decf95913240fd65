// A service with users and devices, spoken to as clients do: each method is one GraphQL operation over HTTP.
import { startApp, type StartOptions, type TestApp } from './app.js';
import * as documents from './documents.js';

/** A refusal as a client sees it. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly code: unknown;
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor(message: string, extensions: Readonly<Record<string, unknown>>) {
    super(`${String(extensions['code'])}: ${message}`);
    this.code = extensions['code'];
    this.extensions = extensions;
  }
}

export interface EventRow {
  readonly id: string;
  readonly seq: number;
  readonly kind: string;
  readonly contentType: string;
  readonly sender: { readonly id: string } | null;
  readonly clientId: string | null;
  readonly recalled: boolean;
  readonly recalledBy: number | null;
  readonly content: Readonly<Record<string, unknown>> | null;
  readonly text: string | null;
  readonly via: string;
  readonly mentions: readonly string[];
  readonly target: { readonly seq: number; readonly recalled: boolean; readonly content: unknown } | null;
  readonly quote: {
    readonly seq: number;
    readonly contentType: string | null;
    readonly sender: { readonly id: string } | null;
    readonly content: unknown;
  } | null;
}
export interface ConvRow {
  readonly id: string;
  readonly type: string;
  readonly title: string | null;
  readonly epoch: number;
  readonly head: number;
  readonly minSeq: number;
  readonly delivered: number;
  readonly read: number;
  readonly unread: number;
  readonly joined: boolean;
  readonly muted: boolean;
  readonly myRole: string | null;
}
export interface SyncItemRow {
  readonly conv: ConvRow | null;
  readonly events: readonly EventRow[];
  readonly through: number;
  readonly head: number;
  readonly hasMore: boolean;
  readonly reset: { readonly reason: string; readonly start: number } | null;
  readonly error: { readonly code: string } | null;
}
interface ItemRow {
  readonly conv: ConvRow | null;
  readonly head: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}
export interface ReadItemRow extends ItemRow {
  readonly read: number | null;
  readonly unread: number | null;
}
export interface DeliveryItemRow extends ItemRow {
  readonly delivered: number | null;
}
export interface Position {
  readonly conv: string;
  readonly seq: number;
}
export interface ChangePage {
  readonly items: readonly { readonly __typename: string; readonly conv: ConvRow }[];
  readonly cursor: string;
  readonly hasMore: boolean;
  readonly reset: boolean;
}
interface Badge {
  readonly unread: number;
  readonly mutedUnread: number;
  readonly convs: number;
  readonly asOf: string;
}

let made = 0;
/** An id that no other call has given. */
export const fresh = (prefix = 'k'): string => `${prefix}${String(++made)}`;

/** Somebody with a credential. Methods answer with the operation's data, and throw Refused. */
export class Actor {
  readonly app: TestApp;
  credential: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(app: TestApp, credential: string, headers: Readonly<Record<string, string>> = {}) {
    this.app = app;
    this.credential = credential;
    this.headers = headers;
  }

  async ask<T>(document: string, variables: Readonly<Record<string, unknown>> = {}): Promise<T> {
    const { data, errors } = await this.app.query(this.credential, document, variables, this.headers);
    const [error] = errors ?? [];
    if (error) throw new Refused(error.message, error.extensions ?? {});
    return data as T;
  }

  async createConv(input: Readonly<Record<string, unknown>>): Promise<{ conv: ConvRow; duplicate: boolean }> {
    const full = { clientId: fresh(), type: 'GROUP', members: [], ...input };
    return (
      await this.ask<{ createConv: { conv: ConvRow; duplicate: boolean } }>(documents.createConv, { input: full })
    ).createConv;
  }

  async send(conv: string, text: string, more: Readonly<Record<string, unknown>> = {}) {
    const input = { conv, clientId: fresh(), contentType: 'TEXT', content: { text }, ...more };
    type Sent = { event: EventRow; duplicate: boolean; conv: ConvRow; badge: Badge };
    return (await this.ask<{ send: Sent }>(documents.send, { input })).send;
  }

  async recall(conv: string, seq: number) {
    type Recalled = { event: EventRow; target: EventRow; conv: ConvRow; badge: Badge };
    return (await this.ask<{ recall: Recalled }>(documents.recall, { conv, seq })).recall;
  }

  async markRead(conv: string, seq: unknown) {
    type Read = { read: number; unread: number; head: number; conv: ConvRow; badge: Badge };
    return (await this.ask<{ markRead: Read }>(documents.markRead, { conv, seq })).markRead;
  }

  async ack(conv: string, seq: unknown) {
    type Acked = { delivered: number; head: number; conv: ConvRow };
    return (await this.ask<{ ack: Acked }>(documents.ack, { conv, seq })).ack;
  }

  async markReadMany(items: readonly Position[]) {
    type Many = { items: ReadItemRow[]; badge: Badge };
    return (await this.ask<{ markReadMany: Many }>(documents.markReadMany, { items })).markReadMany;
  }

  async markAllRead(asOf: string) {
    type All = { items: ReadItemRow[]; complete: boolean; badge: Badge };
    return (await this.ask<{ markAllRead: All }>(documents.markAllRead, { asOf })).markAllRead;
  }

  async ackMany(items: readonly Position[]) {
    return (await this.ask<{ ackMany: { items: DeliveryItemRow[] } }>(documents.ackMany, { items })).ackMany;
  }

  async conv(id: string): Promise<ConvRow> {
    return (await this.ask<{ conv: ConvRow }>(documents.conv, { id })).conv;
  }

  async convs(args: Readonly<Record<string, unknown>> = {}) {
    type Convs = {
      nodes: (ConvRow & { lastEvent: EventRow | null })[];
      asOf: string;
      pageInfo: { hasNextPage: boolean; endCursor: string | null };
    };
    return (await this.ask<{ convs: Convs }>(documents.convs, args)).convs;
  }

  /** All that a device shows, and the audit of one conversation. */
  async look(audited: string | null) {
    type Look = { convs: { nodes: ConvRow[] }; badge: Badge; unreadAudit?: { seqs: number[] } };
    return this.ask<Look>(documents.look, { conv: audited ?? '', audit: audited !== null });
  }

  async badge(): Promise<Badge> {
    return (await this.ask<{ badge: Badge }>(documents.badge)).badge;
  }

  async audit(conv: string, args: Readonly<Record<string, unknown>> = {}) {
    type Audit = { unread: number; seqs: number[]; head: number; read: number; hasMore: boolean };
    return (await this.ask<{ unreadAudit: Audit }>(documents.unreadAudit, { conv, ...args })).unreadAudit;
  }

  async sync(from: readonly { conv: string; after: number; epoch?: number }[], budget?: number) {
    type Sync = { items: SyncItemRow[]; complete: boolean };
    return (await this.ask<{ sync: Sync }>(documents.sync, { from, budget: budget ?? null })).sync;
  }

  /** Everything visible after a local cursor, page by page, as a device catches up. */
  async catchUp(conv: string, after = 0, budget?: number): Promise<EventRow[]> {
    const events: EventRow[] = [];
    for (let cursor = after; ;) {
      const [item] = (await this.sync([{ conv, after: cursor }], budget)).items;
      if (!item || item.error || item.reset) throw new Error(`cannot catch up: ${JSON.stringify(item)}`);
      events.push(...item.events);
      cursor = item.through;
      if (!item.hasMore) return events;
    }
  }

  async history(conv: string, args: Readonly<Record<string, unknown>> = {}) {
    type History = {
      nodes: EventRow[];
      pageInfo: {
        hasPreviousPage: boolean;
        hasNextPage: boolean;
        startCursor: string | null;
        endCursor: string | null;
      };
    };
    return (await this.ask<{ history: History }>(documents.history, { conv, ...args })).history;
  }

  async changes(after: string | null = null, first?: number): Promise<ChangePage> {
    return (await this.ask<{ changes: ChangePage }>(documents.changes, { after, first: first ?? null })).changes;
  }

  async addMembers(conv: string, users: readonly string[]): Promise<ConvRow> {
    return (await this.ask<{ addMembers: { conv: ConvRow } }>(documents.addMembers, { conv, users })).addMembers.conv;
  }

  async removeMember(conv: string, user: string): Promise<ConvRow> {
    return (await this.ask<{ removeMember: { conv: ConvRow } }>(documents.removeMember, { conv, user })).removeMember
      .conv;
  }

  async join(conv: string): Promise<ConvRow> {
    return (await this.ask<{ join: { conv: ConvRow } }>(documents.join, { conv })).join.conv;
  }

  async leave(conv: string): Promise<ConvRow> {
    return (await this.ask<{ leave: { conv: ConvRow } }>(documents.leave, { conv })).leave.conv;
  }

  async setMuted(conv: string, muted: boolean): Promise<ConvRow> {
    return (await this.ask<{ setConvSettings: { conv: ConvRow } }>(documents.setConvSettings, { conv, muted }))
      .setConvSettings.conv;
  }

  /** Installs the app anew and goes on with the new credential; answers it. */
  async reinstall(installId: string): Promise<{ credential: string; installEpoch: number }> {
    type Payload = { credential: string; device: { installEpoch: number } };
    const { credential, device } = (await this.ask<{ reinstall: Payload }>(documents.reinstall, { installId }))
      .reinstall;
    return { credential, installEpoch: device.installEpoch };
  }

  /** The same device with another credential: an old install, say. */
  as(credential: string): Actor {
    return new Actor(this.app, credential, this.headers);
  }
}

export class World implements AsyncDisposable {
  readonly app: TestApp;
  readonly service: Actor;

  constructor(app: TestApp) {
    this.app = app;
    this.service = new Actor(app, app.serviceKey);
  }

  /** The service key acting as a user: no device. */
  asUser(user: string): Actor {
    return new Actor(this.app, this.app.serviceKey, { 'x-tidemark-user': user });
  }

  async users(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.service.ask(documents.upsertUser, { input: { id, name: id } });
  }

  /** A device of a user; the user must exist. */
  async device(user: string, deviceId: string = fresh(`${user}-`)): Promise<Actor> {
    const { registerDevice } = await this.service.ask<{ registerDevice: { credential: string } }>(
      documents.registerDevice,
      {
        input: { user, deviceId },
      },
    );
    return new Actor(this.app, registerDevice.credential);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
  }
}

/** A running service with the users ana, ben and cho. */
export async function startWorld(options: StartOptions = {}): Promise<World> {
  const world = new World(await startApp(options));
  await world.users('ana', 'ben', 'cho');
  return world;
}

// The database: one pool, reads of one snapshot, transactions that are tried again when they lost a race.
// The only folder with Prisma and SQL.
import net from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.js';
import { batches } from './batches.js';
import { changes } from './changes.js';
import { channels } from './channels.js';
import { clock } from './clock.js';
import { contacts } from './contacts.js';
import { conversations } from './conversations.js';
import { delivery } from './delivery.js';
import { devices } from './devices.js';
import { generation } from './generation.js';
import { groups } from './groups.js';
import { joinRequests } from './join-requests.js';
import { memberships } from './memberships.js';
import { messages } from './messages.js';
import { readState } from './read-state.js';
import { redelivery } from './redelivery.js';
import type { Db } from './sql.js';
import { sync } from './sync.js';
import { unread } from './unread.js';
import { users } from './users.js';

const bind = (db: Db) => ({
  batches: batches(db),
  changes: changes(db),
  channels: channels(db),
  clock: clock(db),
  contacts: contacts(db),
  conversations: conversations(db),
  delivery: delivery(db),
  devices: devices(db),
  generation: generation(db),
  groups: groups(db),
  joinRequests: joinRequests(db),
  memberships: memberships(db),
  messages: messages(db),
  readState: readState(db),
  redelivery: redelivery(db),
  sync: sync(db),
  unread: unread(db),
  users: users(db),
});

/** Every statement of the store, bound to the pool or to one transaction. */
export type Tx = ReturnType<typeof bind>;

export interface Store extends Tx, AsyncDisposable {
  /** Several statements that read one snapshot. */
  read<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** READ COMMITTED, as the functions of the log core need. May run `work` again: it must have no effect outside of tx. */
  transaction<T>(work: (tx: Tx) => Promise<T>, timeoutMs?: number): Promise<T>;
  /** The pool itself, for what is no statement of the model: migration state, health. */
  readonly pool: pg.Pool;
}

const maxTries = 5;
const maxWaitMs = 5_000;
const maxTransactionMs = 10_000;
// serialization failure, deadlock; unique violation: another transaction took the same key first (L3)
const lostRaces = new Set(['40001', '40P01', '23505']);

/** Whether the same transaction, tried again, can be expected to succeed. */
export function isLostRace(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, meta, cause } = error as { code?: unknown; meta?: Record<string, unknown>; cause?: { kind?: unknown } };
  if (code === 'P2034' || code === 'P2002') return true;
  if (cause?.kind === 'TransactionWriteConflict') return true;
  const driver = meta?.['driverAdapterError'] as { cause?: { originalCode?: unknown } } | undefined;
  const original = driver?.cause?.originalCode;
  return code === 'P2010' && typeof original === 'string' && lostRaces.has(original);
}

export interface StoreOptions {
  readonly url: string;
  readonly poolMax: number;
  /** a connection on which nothing moves for so long is given up, with whatever waits on it; 0: never */
  readonly silenceMs?: number;
  readonly onError?: (error: Error) => void;
}

/** Connects lazily: creating a store does not ask the server for anything. */
export function createStore({ url, poolMax, silenceMs = 0, onError }: StoreOptions): Store {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolMax,
    connectionTimeoutMillis: maxWaitMs,
    statement_timeout: maxTransactionMs,
    stream: () => impatientSocket(silenceMs),
    // Compiling a plan costs more than it saves here. The log core decides by what each statement sees anew.
    options: '-c jit=off -c default_transaction_isolation=read\\ committed',
    application_name: 'tidemark',
  });
  pool.on('error', (error) => onError?.(error));
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });

  return {
    ...bind(prisma),
    pool,
    read: (work) =>
      prisma.$transaction(async (db) => work(bind(db)), {
        isolationLevel: 'RepeatableRead',
        maxWait: maxWaitMs,
        timeout: maxTransactionMs,
      }),
    async transaction(work, timeoutMs = maxTransactionMs) {
      for (let tries = 1; ; tries++) {
        try {
          return await prisma.$transaction(async (db) => work(bind(db)), { maxWait: maxWaitMs, timeout: timeoutMs });
        } catch (error) {
          if (tries === maxTries || !isLostRace(error)) throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

/** A network that is gone says nothing: without this, what was asked waits for an answer for ever, and its connection too. */
function impatientSocket(silenceMs: number): net.Socket {
  const socket = new net.Socket();
  // of unused connections the pool lets go earlier
  socket.setTimeout(silenceMs, () => {
    const error = new Error(`the database was silent for ${silenceMs} ms`);
    socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
  });
  return socket;
}

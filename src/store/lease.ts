// Who may run on this database: without Redis one process alone, with Redis any number (H6). An advisory lock of the
// session: a process that dies gives it back, however it dies.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';

export const LEASE_LOCK = 7_236_970_003;
const takeWithinMs = 2_000;
const retryEveryMs = 200;
const endWithinMs = 1_000;

export interface LeaseOptions {
  readonly url: string;
  /** several processes, which reach each other over Redis */
  readonly shared: boolean;
  /** the connection broke, and by now another process has the lock: two would not hear each other */
  readonly onLost: () => void;
  readonly onError?: (error: Error) => void;
}

/** Null when another process holds it; one that is just ending is waited for a moment. */
export async function takeLease(options: LeaseOptions): Promise<AsyncDisposable | null> {
  const lease = new Lease(options);
  if (await lease.take(takeWithinMs)) return lease;
  await lease[Symbol.asyncDispose]();
  return null;
}

class Lease implements AsyncDisposable {
  readonly #options: LeaseOptions;
  readonly #name = `tidemark lease ${randomUUID()}`;
  #client: pg.Client | null = null;
  #isHeld = false;
  readonly #closing = new AbortController();

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  async take(withinMs: number): Promise<boolean> {
    const deadline = performance.now() + withinMs;
    const client = await this.#connect();
    this.#client = client;
    while (!(this.#isHeld = await this.#tryLock(client))) {
      if (performance.now() > deadline) return false;
      await pause(retryEveryMs, undefined, { signal: this.#closing.signal });
    }
    return true;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: this.#name,
      connectionTimeoutMillis: 5_000,
      query_timeout: 5_000,
      keepAlive: true,
    });
    client.on('error', (error) => this.#options.onError?.(error));
    client.on('end', () => {
      if (this.#isHeld && this.#client === client) void this.#retake();
    });
    await client.connect();
    return client;
  }

  /** A lock of this very process may have outlived its connection on the server's side: that one is ended. */
  async #tryLock(client: pg.Client): Promise<boolean> {
    const lock = this.#options.shared ? 'pg_try_advisory_lock_shared' : 'pg_try_advisory_lock';
    const { rows } = await client.query<{ taken: boolean }>(
      `/* lease.take */ SELECT ${lock}(${String(LEASE_LOCK)}) AS taken`,
    );
    if (rows[0]?.taken) return true;
    await client.query(
      `/* lease.ghost */ SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = $1 AND pid <> pg_backend_pid()`,
      [this.#name],
    );
    return false;
  }

  async #retake(): Promise<void> {
    this.#isHeld = false;
    while (!this.#closing.signal.aborted) {
      try {
        if (!(await this.take(takeWithinMs))) this.#options.onLost();
        return;
      } catch {
        // the database is away; nobody else can take the lock there either
        await this.#end();
        await pause(retryEveryMs);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isHeld = false;
    this.#closing.abort();
    await this.#end();
  }

  /** Over a network that is gone no end is ever heard of. */
  async #end(): Promise<void> {
    const late = new AbortController();
    const ended = this.#client?.end().catch(() => undefined);
    await Promise.race([ended, pause(endWithinMs, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
  }
}

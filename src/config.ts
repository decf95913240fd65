// The only reader of process.env. Everything is validated at once: one error lists every bad variable.
import { z } from 'zod';

const flag = z.enum(['true', 'false', '1', '0']).transform((value) => value === 'true' || value === '1');
const whole = (min: number, max: number) => z.coerce.number().int().min(min).max(max);
const rate = (fallback: number) => whole(1, 1_000_000).default(fallback);
const list = z.string().transform((value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const origin = z
  .url({ protocol: /^https?$/, error: 'an origin such as https://app.example.org' })
  .refine(
    (value) => URL.canParse(value) && new URL(value).origin === value,
    'an origin has no path and no trailing slash',
  );

const environment = z.object({
  NODE_ENV: z.string().default('development'),
  PORT: whole(0, 65_535).default(4000),
  HOST: z.string().min(1).default('127.0.0.1'),
  METRICS_PORT: whole(0, 65_535).optional(),
  METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'a postgresql:// address' }).optional(),
  DATABASE_POOL_MAX: whole(2, 500).default(10),
  DATABASE_SILENCE_MS: whole(0, 3_600_000).default(12_000),
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: 'a redis:// address' }).optional(),
  REDIS_PREFIX: z.string().max(64).default('tidemark:'),
  DATA_DIR: z.string().min(1).default('.tidemark'),
  SERVICE_KEYS: list
    .pipe(z.array(z.string().min(43, 'a service key has at least 32 random bytes: 43 characters of base64url')).max(2))
    .default([]),
  ALLOWED_ORIGINS: list.pipe(z.array(origin)).optional(),
  GRAPHIQL: flag.optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  RECALL_WINDOW_MS: whole(0, 365 * 86_400_000).default(300_000),
  SEND_RATE: rate(30),
  SEND_BURST: rate(60),
  READ_RATE: rate(500),
  READ_BURST: rate(1_000),
  ACK_RATE: rate(500),
  ACK_BURST: rate(1_000),
  SIGNAL_RATE: rate(10),
  SIGNAL_BURST: rate(30),
  CONNECT_RATE: rate(5),
  CONNECT_BURST: rate(20),
  ADMIT_AT_ONCE: whole(1, 10_000).default(32),
  ADMIT_WAITING: whole(0, 1_000_000).default(1_000),
  REQUESTS_AT_ONCE: whole(1, 10_000).default(100),
  REQUESTS_WAITING: whole(0, 1_000_000).default(1_000),
  MAX_SOCKETS_PER_DEVICE: whole(1, 1_000).default(8),
  WS_QUERIES: flag.default(false),
  REDELIVERY_EVERY_MS: whole(100, 3_600_000).default(15_000),
  REDELIVERY_GRACE_MS: whole(0, 3_600_000).default(5_000),
  CONTACTS_ONLY: flag.default(false),
  PULL_MEMBERS: whole(3, 1_000_000).default(501),
  MAX_GROUP_MEMBERS: whole(2, 100_000).default(500),
  DRAIN_MS: whole(0, 600_000).default(5_000),
  TIDEMARK_FAILPOINT: z.string().optional(),
});

/** What a request may ask for. Breaking one is BAD_USER_INPUT that names it (P1). */
export interface Limits {
  readonly maxConvsPage: number;
  readonly maxSyncConvs: number;
  readonly maxSyncEvents: number;
  readonly maxPage: number;
  readonly maxAuditPage: number;
  readonly maxBatch: number;
  readonly maxDevices: number;
  readonly maxContentBytes: number;
  readonly maxMentions: number;
  readonly maxGroupMembers: number;
  readonly recallWindowMs: number;
  readonly maxRemark: number;
  readonly maxRequestText: number;
  readonly maxNotice: number;
  readonly maxAdmins: number;
  readonly maxPins: number;
  readonly maxSignalled: number;
  /** only contacts may open a direct conversation and write in it */
  readonly contactsOnly: boolean;
}

/** `rate` per `perMs` in the long run, up to `burst` at once. */
export interface Rate {
  readonly rate: number;
  readonly perMs: number;
  readonly burst: number;
}
/** What a device may do how often (P3); connects count for the user as well. */
export type Rates = Readonly<Record<'send' | 'read' | 'ack' | 'signal' | 'connect', Rate>>;

export interface GateLimits {
  readonly atOnce: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}
/** Beyond these clients are told to come back later. */
export interface AdmissionLimits {
  /** sockets and event streams that begin */
  readonly handshakes: GateLimits;
  readonly requests: GateLimits;
  /** how late this process may get to its work, smoothed */
  readonly maxLatenessMs: number;
}

/** How the hints of large conversations travel (H7). */
export interface Delivery {
  /** PULL from this number of members on, PUSH again below 0.8 of it */
  readonly pullAt: number;
  /** after a switch hints go both ways for so long */
  readonly bothMs: number;
  /** what one node says to a conversation's channel: at most once per so long, and kind */
  readonly everyMs: number;
}

export interface Config {
  readonly production: boolean;
  readonly port: number;
  readonly host: string;
  /** null: no metrics are served */
  readonly metricsPort: number | null;
  readonly metricsHost: string;
  /** null: the embedded Postgres, with a demo */
  readonly databaseUrl: string | null;
  readonly poolMax: number;
  /** of a connection to the database; longer than a statement may take */
  readonly silenceMs: number;
  readonly redisUrl: string | null;
  readonly redisPrefix: string;
  readonly dataDir: string;
  readonly serviceKeys: readonly string[];
  /** null: in demo mode any loopback origin, else none (P4) */
  readonly allowedOrigins: readonly string[] | null;
  readonly graphiql: boolean;
  readonly logLevel: string;
  readonly drainMs: number;
  readonly redelivery: { readonly everyMs: number; readonly graceMs: number };
  /** how often it is looked for groups whose end is not in every member's row yet (C4) */
  readonly dissolveEveryMs: number;
  readonly failpoint: string | null;
  readonly limits: Limits;
  readonly rates: Rates;
  readonly admission: AdmissionLimits;
  readonly maxSocketsPerDevice: number;
  /** queries and mutations over WebSocket too */
  readonly wsQueries: boolean;
  readonly delivery: Delivery;
}

/** @throws Error whose message lists every variable that is wrong, one a line */
export function readConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const { data, error } = environment.safeParse(given);
  if (error) throw new Error(error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'));
  const production = data.NODE_ENV === 'production';
  if (production && data.TIDEMARK_FAILPOINT) throw new Error('TIDEMARK_FAILPOINT: refused when NODE_ENV is production');
  return {
    production,
    port: data.PORT,
    host: data.HOST,
    metricsPort: data.METRICS_PORT ?? null,
    metricsHost: data.METRICS_HOST,
    databaseUrl: data.DATABASE_URL ?? null,
    poolMax: data.DATABASE_POOL_MAX,
    silenceMs: data.DATABASE_SILENCE_MS,
    redisUrl: data.REDIS_URL ?? null,
    redisPrefix: data.REDIS_PREFIX,
    dataDir: data.DATA_DIR,
    serviceKeys: data.SERVICE_KEYS,
    allowedOrigins: data.ALLOWED_ORIGINS ?? null,
    graphiql: data.GRAPHIQL ?? !production,
    logLevel: data.LOG_LEVEL,
    drainMs: data.DRAIN_MS,
    redelivery: { everyMs: data.REDELIVERY_EVERY_MS, graceMs: data.REDELIVERY_GRACE_MS },
    dissolveEveryMs: 5_000,
    failpoint: data.TIDEMARK_FAILPOINT ?? null,
    limits: toLimits(data),
    delivery: { pullAt: data.PULL_MEMBERS, bothMs: 30_000, everyMs: 100 },
    rates: toRates(data),
    admission: toAdmission(data),
    maxSocketsPerDevice: data.MAX_SOCKETS_PER_DEVICE,
    wsQueries: data.WS_QUERIES,
  };
}

const toLimits = (data: z.infer<typeof environment>): Limits => ({
  ...defaultLimits,
  recallWindowMs: data.RECALL_WINDOW_MS,
  maxGroupMembers: data.MAX_GROUP_MEMBERS,
  contactsOnly: data.CONTACTS_ONLY,
});

const toRates = (data: z.infer<typeof environment>): Rates => ({
  send: { rate: data.SEND_RATE, perMs: 1_000, burst: data.SEND_BURST },
  read: { rate: data.READ_RATE, perMs: 1_000, burst: data.READ_BURST },
  ack: { rate: data.ACK_RATE, perMs: 1_000, burst: data.ACK_BURST },
  signal: { rate: data.SIGNAL_RATE, perMs: 1_000, burst: data.SIGNAL_BURST },
  connect: { rate: data.CONNECT_RATE, perMs: 60_000, burst: data.CONNECT_BURST },
});

const toAdmission = (data: z.infer<typeof environment>): AdmissionLimits => ({
  // shorter than the 3 s that connection_init has, and than clients wait
  handshakes: { atOnce: data.ADMIT_AT_ONCE, maxWaiting: data.ADMIT_WAITING, maxWaitMs: 2_000 },
  requests: { atOnce: data.REQUESTS_AT_ONCE, maxWaiting: data.REQUESTS_WAITING, maxWaitMs: 5_000 },
  maxLatenessMs: 1_000,
});

export const defaultLimits: Limits = {
  maxConvsPage: 1_000,
  maxSyncConvs: 1_000,
  maxSyncEvents: 1_000,
  maxPage: 200,
  maxAuditPage: 1_000,
  maxBatch: 200,
  maxDevices: 20,
  maxContentBytes: 8_192,
  maxMentions: 50,
  maxGroupMembers: 500,
  recallWindowMs: 300_000,
  maxRemark: 16,
  maxRequestText: 255,
  maxNotice: 2_048,
  maxAdmins: 3,
  maxPins: 5,
  maxSignalled: 16,
  contactsOnly: false,
};

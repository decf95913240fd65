// How a hint is written on a bus that leaves the process. Only the fields named here travel, so a body never does (H1);
// what a newer or broken node wrote is recognised as unreadable instead of being half understood.
import type { BusHint } from '../model.js';

const VERSION = 2;

type Check = (value: unknown) => boolean;
type Fields<H extends BusHint> = Readonly<Record<Exclude<keyof H, 'kind'>, Check>>;

const text: Check = (value) => typeof value === 'string';
const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const oneOf =
  (...known: readonly string[]): Check =>
  (value) =>
    known.some((word) => word === value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const origin = {
  conv: text,
  conversationType: oneOf('DIRECT', 'GROUP', 'CHANNEL'),
  originDevice: orNull(text),
  change: orNull(count),
};

const FIELDS: { readonly [K in BusHint['kind']]: Fields<Extract<BusHint, { kind: K }>> } = {
  message: {
    ...origin,
    head: count,
    seq: count,
    eventKind: oneOf('MESSAGE', 'MEMBERSHIP', 'RECALL', 'NOTICE', 'CALL'),
    contentType: text,
    sender: orNull(text),
    target: orNull(count),
  },
  read: { ...origin, read: count, unread: count, head: count },
  conv: { ...origin, contentType: text },
  change: {
    conversationType: oneOf('NONE'),
    contentType: text,
    about: (value) => isRecord(value) && Object.values(value).every(text),
    change: count,
    originDevice: orNull(text),
  },
  mode: { conv: text },
  // the only content that travels here, for it is kept nowhere
  signal: {
    conv: orNull(text),
    conversationType: oneOf('NONE', 'DIRECT', 'GROUP', 'CHANNEL'),
    contentType: text,
    sender: orNull(text),
    originDevice: orNull(text),
    sentAt: count,
    content: orNull((value) => isRecord(value)),
  },
  device: { device: text, installEpoch: count, reason: oneOf('REVOKED', 'STALE_INSTALL') },
};

/** @param generation which life of which database it is about */
export function toWire(hint: BusHint, generation = ''): string {
  return JSON.stringify({ v: VERSION, g: generation, ...pick(hint.kind, hint) });
}

/** null: it does not say. */
export function generationOf(payload: unknown): string | null {
  const g = isRecord(payload) ? payload['g'] : null;
  return typeof g === 'string' ? g : null;
}

/** null: not ours, of another version, or of a kind unknown here. The receiver must then look for itself. */
export function fromWire(payload: unknown): BusHint | null {
  if (!isRecord(payload) || payload['v'] !== VERSION) return null;
  const kind = payload['kind'];
  if (typeof kind !== 'string' || !isKind(kind)) return null;
  for (const [field, check] of Object.entries<Check>(FIELDS[kind])) if (!check(payload[field])) return null;
  return pick(kind, payload) as unknown as BusHint;
}

function pick(kind: BusHint['kind'], from: object): Record<string, unknown> {
  const source: Record<string, unknown> = { ...from };
  return { kind, ...Object.fromEntries(Object.keys(FIELDS[kind]).map((field) => [field, source[field]])) };
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const isKind = (kind: string): kind is BusHint['kind'] => Object.hasOwn(FIELDS, kind);

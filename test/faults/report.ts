// The figures of a run: what was acknowledged, what had to be repeated, what became of the hints.
import type { FaultWorld } from './world.js';

export interface Survived {
  readonly fault: string;
  readonly rightAfterMs: number;
}

export interface Figures {
  readonly acknowledged: Readonly<Record<string, number>>;
  readonly repeated: Readonly<Record<string, number>>;
  readonly hints: Readonly<Record<string, number>>;
  readonly survived: readonly Survived[];
  readonly violations: readonly string[];
}

const series = {
  published: 'tidemark_hints_published_total',
  failed: 'tidemark_hint_publish_failures_total',
  delivered: 'tidemark_hints_delivered_total',
  coalesced: 'tidemark_hints_coalesced_total',
  resyncsOfTheBus: 'tidemark_resyncs_total{reason="BUS"}',
  resyncsAtStart: 'tidemark_resyncs_total{reason="START"}',
};

export async function figuresOf(world: FaultWorld, survived: readonly Survived[]): Promise<Figures> {
  const { cluster, ledger, devices } = world;
  const hints: Record<string, number> = {};
  for (const [name, line] of Object.entries(series)) hints[name] = await cluster.counted(line);
  // each user has two devices: one hint told to a user is two deliveries, or part of a merged one, unless it was lost
  const { published = 0, delivered = 0, coalesced = 0 } = hints;
  hints['notDelivered'] =
    (published * devices.length) / new Set(devices.map(({ user }) => user)).size - delivered - coalesced;
  const { acknowledged, repeated, violations } = ledger;
  return { acknowledged, repeated, hints, survived, violations };
}

export function tableOf({ acknowledged, repeated, hints, survived, violations }: Figures): string {
  const parts = Object.entries({ acknowledged, 'asked again because of': repeated, hints }).flatMap(([title, rows]) => [
    title,
    ...Object.entries(rows).map(([name, value]) => `  ${name.padEnd(32)} ${String(value).padStart(8)}`),
  ]);
  const width = Math.max(32, ...survived.map(({ fault }) => fault.length));
  const faults = survived.map(
    ({ fault, rightAfterMs }) => `  ${fault.padEnd(width)} ${String(rightAfterMs).padStart(8)} ms`,
  );
  const end = violations.length === 0 ? 'no violation' : `VIOLATIONS\n  ${violations.join('\n  ')}`;
  return [...parts, 'all clients right, after', ...faults, end].join('\n');
}

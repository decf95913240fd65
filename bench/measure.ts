// How the benches measure: ours and its baselines take turns, so that what else the machine does meets all of them, and
// medians are compared. The ratios are the result; the figures themselves belong to one machine.
import type { BenchServer } from './postgres.js';

export interface Options {
  readonly convs: number;
  readonly messages: number;
  readonly members: number;
  readonly sockets: number;
  /** the members of a very large group */
  readonly crowd: number;
  readonly rounds: number;
  /** how long one turn of a bench of requests takes */
  readonly turnMs: number;
  /** whether a commit waits for the disk */
  readonly fsync: boolean;
}
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}
export interface Report {
  readonly rows: readonly Row[];
  /** "what.baseline": ours / baseline */
  readonly ratio: Readonly<Record<string, number>>;
}
export type Bench = (options: Options, server: BenchServer) => Promise<Report>;

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}
export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** What each contender measured in each round. Round 0 warms up and is thrown away; every other round runs backwards. */
export async function alternate<Name extends string>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[];
  const measured = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const value = await contenders[name]();
      if (round > 0) measured[name].push(value);
    }
  }
  return measured;
}

export async function millisecondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Operations per second of `lanes` that each do one after the other, `count` in all or for `ms`. */
export async function rateOf(
  { lanes, count = Infinity, ms = Infinity }: { lanes: number; count?: number; ms?: number },
  work: (n: number, lane: number) => Promise<unknown>,
): Promise<number> {
  const startedAt = performance.now();
  let taken = 0;
  const goesOn = () => taken < count && performance.now() - startedAt < ms;
  const run = async (lane: number) => {
    while (goesOn()) await work(taken++, lane);
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)));
  return (taken / (performance.now() - startedAt)) * 1_000;
}

/** Collects the rows and ratios of a report. */
export class Findings implements Report {
  readonly rows: Row[] = [];
  readonly ratio: Record<string, number> = {};

  row(name: string, value: number, unit: string): void {
    this.rows.push({ name, value: Number(value.toPrecision(4)), unit });
  }

  against(what: string, baseline: string, ours: number, theirs: number): void {
    this.ratio[`${what}.${baseline}`] = Number((ours / theirs).toPrecision(3));
  }

  /** A row for each contender, and a ratio for each but the first, which is ours. */
  compare(what: string, medians: Readonly<Record<string, number>>, unit: string): void {
    const [[, ours] = ['', Number.NaN], ...baselines] = Object.entries(medians);
    for (const [name, value] of Object.entries(medians)) this.row(`${what}: ${name}`, value, unit);
    for (const [name, value] of baselines) this.against(what, name, ours, value);
  }
}

export const mediansOf = (measured: Readonly<Record<string, readonly number[]>>): Record<string, number> =>
  Object.fromEntries(Object.entries(measured).map(([name, values]) => [name, median(values)]));

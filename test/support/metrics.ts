// The numbers of a running service, as its /metrics tells them.

/** Series, written as there (`name{label="value"}`), and its number. */
export type MetricValues = ReadonlyMap<string, number>;

export async function readMetrics({ metricsUrl }: { readonly metricsUrl: string | null }): Promise<MetricValues> {
  const text = await (await fetch(metricsUrl ?? '')).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

/** Our own; how many the process has depends on what it has open. */
export const seriesOf = (values: MetricValues): string[] =>
  [...values.keys()].filter((series) => series.startsWith('tidemark_')).toSorted();

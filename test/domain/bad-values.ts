// Values that do not fit, by what they are asked for.
export const many = (n: number) => Array.from({ length: n }, (_, index) => `u${String(index)}`);
export const long = (n: number) => 'x'.repeat(n);

export type Values = [value: unknown, limit?: number][];
export interface Case {
  readonly name: string;
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  /** each replaces `$v` */
  readonly values: Values;
  readonly as?: 'service';
}
export const seqs: Values = [[-1], [0.5], ['3'], [2 ** 53], [1e300], [true], [null], [[3, 4]], [{}]];
export const pages = (max: number): Values => [[0], [-1], [max + 1, max], [2 ** 31 - 1], [2 ** 31], [1.5], ['5']];
export const shorts = (max: number): Values => [
  [''],
  [long(max + 1), max],
  ['a\nb'],
  ['a\u0000'],
  ['\u007f'],
  ['\ud800'],
  [{}],
];
export const required = (values: Values): Values => [...values, [null]];

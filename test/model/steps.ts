// The alphabet of the random histories: what a step may be. Numbers are choices, taken modulo what there is to choose from,
// so that every step makes sense in every history and a failing one shrinks.
import fc from 'fast-check';

export const kinds = [
  'send', 'repeat', 'recall', 'markRead', 'ack', 'reinstall', 'join', 'leave', 'kick', 'add',
  'floor', 'prune', 'visible', 'sync', 'history', 'mute',
] as const; // prettier-ignore
export type Kind = (typeof kinds)[number];

export interface Move {
  readonly kind: Kind;
  readonly user: number;
  readonly device: number;
  readonly conv: number;
  /** which seq, which earlier key, how much */
  readonly pick: number;
  /** near what the seq lies: the head, a border of a period, the floor, a message of one's own or a recalled one, anywhere */
  readonly near: 'head' | 'edge' | 'floor' | 'own' | 'any';
  readonly odd: boolean;
}
/** Several at once: the first is stopped at the failpoint until one of the others waits for it. */
export interface Together {
  readonly first: Move;
  readonly rest: readonly Move[];
  readonly point: 'after lock' | 'before commit';
}
export type Step = Move | Together;

const choice = fc.nat({ max: 999 });
const moveOf = (weights: Partial<Record<Kind, number>>): fc.Arbitrary<Move> =>
  fc.record({
    kind: fc.oneof(
      ...Object.entries(weights).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) })),
    ),
    user: choice,
    device: choice,
    conv: choice,
    pick: choice,
    near: fc.constantFrom('head', 'edge', 'floor', 'own', 'any'),
    odd: fc.boolean(),
  });

const alone = moveOf({
  send: 36, repeat: 5, recall: 10, markRead: 13, ack: 6, reinstall: 1, join: 10, leave: 5, kick: 3, add: 2,
  floor: 4, prune: 3, visible: 1, sync: 4, history: 3, mute: 1,
}); // prettier-ignore
const racing = moveOf({ send: 8, repeat: 2, recall: 3, markRead: 6, ack: 3, join: 3, leave: 2, kick: 3, add: 2 });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 9, arbitrary: alone },
  {
    weight: 1,
    arbitrary: fc.record({
      first: moveOf({ send: 3, recall: 2, markRead: 2, join: 2, leave: 2, kick: 3, add: 1 }),
      rest: fc.array(racing, { minLength: 2, maxLength: 5 }),
      point: fc.constantFrom('after lock', 'before commit'),
    }),
  },
);

export const history = (steps: number) =>
  fc.record({
    users: fc.integer({ min: 2, max: 4 }),
    convs: fc.integer({ min: 1, max: 2 }),
    steps: fc.array(step, { minLength: steps, maxLength: steps, size: 'max' }),
  });

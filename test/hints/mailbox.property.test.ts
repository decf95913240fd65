// The law of the mailbox: whatever it drops, the reader knows the outcome or has been told to ask again.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Mailbox } from '../../src/hints/mailbox.js';
import type { EventKind, Hint, Resync } from '../../src/model.js';
import { conv, convChange, message, read, recall } from './samples.js';

const kinds: readonly EventKind[] = ['MESSAGE', 'MEMBERSHIP', 'NOTICE', 'CALL'];
const convs = fc.integer({ min: 1, max: 5 }).map(conv);
const seqs = fc.integer({ min: 1, max: 40 });

const hints: fc.Arbitrary<Hint> = fc.oneof(
  fc
    .tuple(convs, seqs, fc.constantFrom(...kinds), fc.integer({ min: 0, max: 20 }))
    .map(([of, seq, kind, ahead]) => ({ ...message(of, seq, kind), head: seq + ahead })),
  { weight: 3, arbitrary: fc.tuple(convs, seqs, fc.integer({ min: 1, max: 60 })).map((args) => recall(...args)) },
  fc.tuple(convs, seqs, seqs).map((args) => read(...args)),
  convs.map((of) => convChange(of)),
);
type Step = Hint | 'read' | 'resync';
const steps = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 12, arbitrary: hints },
    { weight: 4, arbitrary: fc.constant('read') },
    { weight: 1, arbitrary: fc.constant('resync') },
  ),
  { maxLength: 400 },
);

/** What a reader of hints knows: per conversation the largest head and read, and each recalled target. */
class Knowledge {
  readonly facts = new Map<string, number>();

  learn(hint: Hint): void {
    const raise = (fact: string, to: number) => {
      this.facts.set(fact, Math.max(this.facts.get(fact) ?? 0, to));
    };
    if (hint.kind === 'read') raise(`read of ${hint.conv}`, hint.read);
    else if (hint.kind === 'conv') raise(`change of ${hint.conv}`, 1);
    else if (hint.kind === 'change') raise(JSON.stringify(hint.about), hint.change);
    else if (hint.kind === 'message') {
      raise(`head of ${hint.conv}`, hint.head);
      raise(`newest ${hint.eventKind} of ${hint.conv}`, hint.seq);
      if (hint.target !== null) raise(`recall of ${hint.conv} ${String(hint.target)}`, 1);
    }
  }

  /** What a resync makes the reader ask for, and get. */
  catchUp(truth: Knowledge): void {
    for (const [fact, value] of truth.facts) this.facts.set(fact, value);
  }
}

describe('Mailbox', () => {
  it('[H4] the reader finally knows every outcome or was told to resync after what it missed; memory is bounded', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 60 }), async (run, maxSlots) => {
        const mailbox = new Mailbox({ maxSlots });
        const [truth, reader] = [new Knowledge(), new Knowledge()];
        const see = (item: Hint | Resync): void => {
          if (item.kind === 'resync') reader.catchUp(truth);
          else reader.learn(item);
        };
        const take = async (): Promise<void> => {
          const { value, done } = await mailbox.next();
          if (!done) see(value);
        };
        for (const step of run) {
          if (step === 'read') {
            if (mailbox.size > 0) await take();
          } else if (step === 'resync') mailbox.resync('BUS');
          else {
            truth.learn(step);
            mailbox.hint(step);
          }
          expect(mailbox.size).toBeLessThanOrEqual(maxSlots + 1);
        }
        while (mailbox.size > 0) await take();
        expect(Object.fromEntries(reader.facts)).toEqual(Object.fromEntries(truth.facts));
      }),
      { numRuns: 500 },
    );
  });

  it('[H4] a reader who waits all the time misses no conversation’s outcome either', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(hints, { maxLength: 200 }), async (run) => {
        const mailbox = new Mailbox();
        const [truth, reader] = [new Knowledge(), new Knowledge()];
        const reading = (async () => {
          for await (const item of mailbox) {
            if (item.kind === 'resync') reader.catchUp(truth);
            else reader.learn(item);
          }
        })();
        for (const hint of run) {
          truth.learn(hint);
          mailbox.hint(hint);
          if (hint.kind === 'conv') await Promise.resolve();
        }
        while (mailbox.size > 0) await Promise.resolve();
        await Promise.resolve();
        await mailbox.return();
        await reading;
        expect(Object.fromEntries(reader.facts)).toEqual(Object.fromEntries(truth.facts));
      }),
    );
  });
});

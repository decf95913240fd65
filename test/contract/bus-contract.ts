// What every hint bus promises; run on each implementation.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HintBus, Listening } from '../../src/hints/bus.js';
import { ana, ben, cho, conv, message, read, recorder, type Recorder } from '../hints/samples.js';

const room = conv(1);

async function until(check: () => void): Promise<void> {
  await vi.waitFor(check, { timeout: 10_000, interval: 5 });
}

export function busContract(name: string, createBus: () => HintBus | Promise<HintBus>): void {
  describe(`${name} hint bus`, () => {
    let bus: HintBus;

    beforeEach(async () => {
      bus = await createBus();
      await until(() => {
        expect(bus.state).toBe('up');
      });
    });

    afterEach(async () => {
      await bus[Symbol.asyncDispose]();
    });

    /** Whatever was published before this returns has arrived, or never will: hints of one publisher keep their order. */
    async function settle(): Promise<void> {
      const sink = recorder();
      const listening = await bus.listen(cho, sink);
      bus.publish([cho], message(room, 1));
      await until(() => {
        expect(sink.hints.length).toBe(1);
      });
      listening.stop();
    }

    it('[H2] what is published right after listen has resolved arrives, 200 times of 200', async () => {
      for (let seq = 1; seq <= 200; seq++) {
        const sink = recorder();
        const listening = await bus.listen(ana, sink);
        bus.publish([ana], message(room, seq));
        await until(() => {
          expect(sink.seqs()).toEqual([seq]);
        });
        listening.stop();
      }
    });

    it('[H2] the same holds for 200 users who come at once', async () => {
      const sinks = await Promise.all(
        Array.from({ length: 200 }, async (_, n) => {
          const sink = recorder();
          const user = `${ana}${String(n)}` as typeof ana;
          await bus.listen(user, sink);
          bus.publish([user], message(room, n + 1));
          return sink;
        }),
      );
      await until(() => {
        expect(sinks.map((sink) => sink.seqs())).toEqual(sinks.map((_, n) => [n + 1]));
      });
    });

    it('[H6] every sink of the user gets a hint, the publisher’s own node included, and no other user’s sink', async () => {
      const [phone, laptop, other] = [recorder(), recorder(), recorder()];
      await bus.listen(ana, phone);
      await bus.listen(ana, laptop);
      await bus.listen(ben, other);
      bus.publish([ana], message(room, 7));
      await settle();
      expect(phone.hints).toEqual([message(room, 7)]);
      expect(laptop.hints).toEqual([message(room, 7)]);
      expect(other.hints).toEqual([]);
    });

    it('[H6] one publish reaches every user it names, once each', async () => {
      const sinks = [recorder(), recorder()] as const;
      await bus.listen(ana, sinks[0]);
      await bus.listen(ben, sinks[1]);
      bus.publish([ana, ben], read(room, 3, 5));
      await settle();
      expect(sinks.map((sink) => sink.hints)).toEqual([[read(room, 3, 5)], [read(room, 3, 5)]]);
    });

    it('[H1] publish returns before any sink is called', async () => {
      const sink = recorder();
      await bus.listen(ana, sink);
      bus.publish([ana], message(room, 1));
      expect(sink.hints).toEqual([]);
      await settle();
      expect(sink.hints.length).toBe(1);
    });

    it('[H6] hints of one publisher keep their order', async () => {
      const sink = recorder();
      await bus.listen(ana, sink);
      const seqs = Array.from({ length: 2_000 }, (_, n) => n + 1);
      for (const seq of seqs) bus.publish([ana], message(room, seq));
      await until(() => {
        expect(sink.hints.length).toBe(seqs.length);
      });
      expect(sink.seqs()).toEqual(seqs);
    });

    it('[I4] a device hint travels unchanged', async () => {
      const sink = recorder();
      await bus.listen(ana, sink);
      const revoked = { kind: 'device', device: 'phone' as never, installEpoch: 3, reason: 'REVOKED' } as const;
      bus.publish([ana], revoked);
      await settle();
      expect(sink.hints).toEqual([revoked]);
    });

    it('a stopped listening hears nothing more, the others go on, and nothing is left behind', async () => {
      const [stopped, kept] = [recorder(), recorder()];
      const baseline = bus.stats();
      const first = await bus.listen(ana, stopped);
      const second = await bus.listen(ana, kept);
      expect(bus.stats()).toEqual({ sinks: 2, channels: 1 });
      bus.publish([ana], message(room, 1));
      first.stop();
      first.stop();
      await settle();
      expect(stopped.hints).toEqual([]);
      expect(kept.seqs()).toEqual([1]);
      second.stop();
      await until(() => {
        expect(bus.stats()).toEqual(baseline);
      });
      expect(baseline).toEqual({ sinks: 0, channels: 0 });
    });

    it('[H2] a user who comes and goes while others publish loses nothing after the acknowledgement', async () => {
      let seq = 0;
      const lost: string[] = [];
      const done = new AbortController();
      const publisher = (async () => {
        while (!done.signal.aborted) {
          bus.publish([ana], message(room, ++seq));
          await new Promise(setImmediate);
        }
      })();

      async function comeAndGo(times: number): Promise<void> {
        for (let n = 0; n < times; n++) {
          const sink = recorder();
          const listening = await bus.listen(ana, sink);
          const from = seq + 1;
          bus.publish([ana], message(room, ++seq));
          await until(() => {
            expect(sink.seqs()).toContain(from);
          });
          lost.push(...gaps(sink));
          listening.stop();
        }
      }
      await Promise.all(Array.from({ length: 4 }, () => comeAndGo(50)));
      done.abort();
      await publisher;
      expect(lost).toEqual([]);
      await until(() => {
        expect(bus.stats()).toEqual({ sinks: 0, channels: 0 });
      });
    });

    it('[H2] a hundred listenings that begin and end at once leave nothing behind', async () => {
      const churn = Array.from({ length: 100 }, async () => {
        const listening: Listening = await bus.listen(ana, recorder());
        listening.stop();
      });
      await Promise.all(churn);
      await until(() => {
        expect(bus.stats()).toEqual({ sinks: 0, channels: 0 });
      });
      const sink = recorder();
      await bus.listen(ana, sink);
      bus.publish([ana], message(room, 1));
      await until(() => {
        expect(sink.seqs()).toEqual([1]);
      });
    });

    it('[L8] another life of the database resyncs every sink once, and hints go on', async () => {
      const [one, two] = [recorder(), recorder()];
      expect(bus.enter('first')).toBe(false);
      await bus.listen(ana, one);
      await bus.listen(ben, two);
      expect(bus.enter('first')).toBe(false);
      expect([one.resyncs, two.resyncs]).toEqual([[], []]);
      expect([bus.enter('second'), bus.enter('second')]).toEqual([true, false]);
      expect([one.resyncs, two.resyncs]).toEqual([['RESTORED'], ['RESTORED']]);
      bus.publish([ana, ben], message(room, 1));
      await settle();
      expect([one.seqs(), two.seqs()]).toEqual([[1], [1]]);
    });

    it('[H4] a sink that throws harms neither the other sinks nor the publisher', async () => {
      const [before, after] = [recorder(), recorder()];
      await bus.listen(ana, before);
      await bus.listen(ana, {
        hint: () => {
          throw new Error('a broken sink');
        },
        resync: () => undefined,
      });
      await bus.listen(ana, after);
      bus.publish([ana], message(room, 1));
      bus.publish([ana], message(room, 2));
      await settle();
      expect(before.seqs()).toEqual([1, 2]);
      expect(after.seqs()).toEqual([1, 2]);
    });

    it('after it was disposed it publishes nothing and refuses to listen', async () => {
      const sink = recorder();
      await bus.listen(ana, sink);
      await bus[Symbol.asyncDispose]();
      bus.publish([ana], message(room, 1));
      await expect(bus.listen(ana, recorder())).rejects.toThrow('the hint bus is closed');
      expect(sink.hints).toEqual([]);
    });
  });
}

/** Between the first and the last hint that a sink got, none may be missing. */
function gaps(sink: Recorder): string[] {
  const seqs = sink.seqs();
  return seqs.flatMap((seq, n) => {
    const before = seqs[n - 1];
    return before === undefined || seq === before + 1 ? [] : [`${String(before)} then ${String(seq)}`];
  });
}

// What every hint bus promises, of a user's channel and of a conversation's alike; run on each implementation.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HintBus, HintSink, Listening } from '../../src/hints/bus.js';
import type { UserId } from '../../src/model.js';
import { ana, ben, broadcast, cho, conv, message, read, recorder, type Recorder } from '../hints/samples.js';

const room = conv(1);

/** One kind of channel; they are numbered from 1. */
interface Lane {
  readonly name: string;
  listen(bus: HintBus, channel: number, sink: HintSink): Promise<Listening>;
  publish(bus: HintBus, channel: number, seq: number): void;
}
const user = (n: number) => `user-${String(n)}` as UserId;
const lanes: readonly Lane[] = [
  {
    name: 'a user',
    listen: (bus, n, sink) => bus.listen(user(n), sink),
    publish: (bus, n, seq) => {
      bus.publish([user(n)], message(room, seq));
    },
  },
  {
    name: 'a conversation',
    listen: (bus, n, sink) => bus.listenToConv(conv(n), sink),
    publish: (bus, n, seq) => {
      bus.publishToConv(message(conv(n), seq));
    },
  },
];

async function until(check: () => void): Promise<void> {
  await vi.waitFor(check, { timeout: 10_000, interval: 5 });
}

/** Whatever was published before this returns has arrived, or never will: hints of one publisher keep their order. */
async function settle(bus: HintBus): Promise<void> {
  const sink = recorder();
  const listening = await bus.listen(cho, sink);
  bus.publish([cho], message(room, 1));
  await until(() => {
    expect(sink.hints.length).toBe(1);
  });
  listening.stop();
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

    it('[H6] one publish reaches every user it names, once each', async () => {
      const sinks = [recorder(), recorder()] as const;
      await bus.listen(ana, sinks[0]);
      await bus.listen(ben, sinks[1]);
      bus.publish([ana, ben], read(room, 3, 5));
      await settle(bus);
      expect(sinks.map((sink) => sink.hints)).toEqual([[read(room, 3, 5)], [read(room, 3, 5)]]);
    });

    it('[I4] [H7] what is for the nodes themselves travels unchanged', async () => {
      const sink = recorder();
      await bus.listen(ana, sink);
      const revoked = { kind: 'device', device: 'phone' as never, installEpoch: 3, reason: 'REVOKED' } as const;
      const switched = { kind: 'mode', conv: room } as const;
      bus.publish([ana], revoked);
      bus.publish([ana], switched);
      await settle(bus);
      expect(sink.hints).toEqual([revoked, switched]);
    });

    it('[H7] who listens to a conversation hears nothing that is said to users, nor the other way round', async () => {
      const [ofUser, ofConv] = [recorder(), recorder()];
      await bus.listen(room as string as UserId, ofUser); // a user may be called like a conversation
      await bus.listenToConv(room, ofConv);
      bus.publish([room as string as UserId], message(room, 1));
      bus.publishToConv(message(room, 2));
      await settle(bus);
      expect([ofUser.seqs(), ofConv.seqs()]).toEqual([[1], [2]]);
    });

    it('[X4] what is for all reaches whoever listens to all, whole, and nobody who listens to less', async () => {
      const [all, one] = [recorder(), recorder()];
      await bus.listenToAll(all);
      await bus.listen(ana, one);
      bus.publishToAll(broadcast);
      await settle(bus);
      await until(() => {
        expect(all.hints).toEqual([broadcast]);
      });
      expect(one.hints).toEqual([]);
    });

    it('[L8] another life of the database resyncs every sink once, and hints go on', async () => {
      const sinks = [recorder(), recorder(), recorder()] as const;
      const [one, two, three] = sinks;
      expect(bus.enter('first')).toBe(false);
      await bus.listen(ana, one);
      await bus.listen(ben, two);
      await bus.listenToConv(room, three);
      expect(bus.enter('first')).toBe(false);
      expect(sinks.map(({ resyncs }) => resyncs)).toEqual([[], [], []]);
      expect([bus.enter('second'), bus.enter('second')]).toEqual([true, false]);
      expect(sinks.map(({ resyncs }) => resyncs)).toEqual([['RESTORED'], ['RESTORED'], ['RESTORED']]);
      bus.publish([ana, ben], message(room, 1));
      bus.publishToConv(message(room, 1));
      await settle(bus);
      expect(sinks.map((sink) => sink.seqs())).toEqual([[1], [1], [1]]);
    });

    describe.each(lanes)('the channel of $name', ({ listen, publish }) => {
      it('[H2] what is published right after listen has resolved arrives, 200 times of 200', async () => {
        for (let seq = 1; seq <= 200; seq++) {
          const sink = recorder();
          const listening = await listen(bus, 1, sink);
          publish(bus, 1, seq);
          await until(() => {
            expect(sink.seqs()).toEqual([seq]);
          });
          listening.stop();
        }
      });

      it('[H2] the same holds for 200 who come at once', async () => {
        const sinks = await Promise.all(
          Array.from({ length: 200 }, async (_, n) => {
            const sink = recorder();
            await listen(bus, n + 1, sink);
            publish(bus, n + 1, n + 1);
            return sink;
          }),
        );
        await until(() => {
          expect(sinks.map((sink) => sink.seqs())).toEqual(sinks.map((_, n) => [n + 1]));
        });
      });

      it('[H6] every sink gets a hint, the publisher’s own node included, and no sink of another channel', async () => {
        const [phone, laptop, other] = [recorder(), recorder(), recorder()];
        await listen(bus, 1, phone);
        await listen(bus, 1, laptop);
        await listen(bus, 2, other);
        publish(bus, 1, 7);
        await settle(bus);
        expect(phone.hints).toEqual([message(room, 7)]);
        expect(laptop.hints).toEqual([message(room, 7)]);
        expect(other.hints).toEqual([]);
      });

      it('[H1] publish returns before any sink is called', async () => {
        const sink = recorder();
        await listen(bus, 1, sink);
        publish(bus, 1, 1);
        expect(sink.hints).toEqual([]);
        await settle(bus);
        expect(sink.hints.length).toBe(1);
      });

      it('[H6] hints of one publisher keep their order', async () => {
        const sink = recorder();
        await listen(bus, 1, sink);
        const seqs = Array.from({ length: 2_000 }, (_, n) => n + 1);
        for (const seq of seqs) publish(bus, 1, seq);
        await until(() => {
          expect(sink.hints.length).toBe(seqs.length);
        });
        expect(sink.seqs()).toEqual(seqs);
      });

      it('a stopped listening hears nothing more, the others go on, and nothing is left behind', async () => {
        const [stopped, kept] = [recorder(), recorder()];
        const baseline = bus.stats();
        const first = await listen(bus, 1, stopped);
        const second = await listen(bus, 1, kept);
        expect(bus.stats()).toEqual({ sinks: 2, channels: 1 });
        publish(bus, 1, 1);
        first.stop();
        first.stop();
        await settle(bus);
        expect(stopped.hints).toEqual([]);
        expect(kept.seqs()).toEqual([1]);
        second.stop();
        await until(() => {
          expect(bus.stats()).toEqual(baseline);
        });
        expect(baseline).toEqual({ sinks: 0, channels: 0 });
      });

      it('[H2] who comes and goes while others publish loses nothing after the acknowledgement', async () => {
        let seq = 0;
        const lost: string[] = [];
        const done = new AbortController();
        const publisher = (async () => {
          while (!done.signal.aborted) {
            publish(bus, 1, ++seq);
            await new Promise(setImmediate);
          }
        })();

        async function comeAndGo(times: number): Promise<void> {
          for (let n = 0; n < times; n++) {
            const sink = recorder();
            const listening = await listen(bus, 1, sink);
            const from = seq + 1;
            publish(bus, 1, ++seq);
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
          const listening: Listening = await listen(bus, 1, recorder());
          listening.stop();
        });
        await Promise.all(churn);
        await until(() => {
          expect(bus.stats()).toEqual({ sinks: 0, channels: 0 });
        });
        const sink = recorder();
        await listen(bus, 1, sink);
        publish(bus, 1, 1);
        await until(() => {
          expect(sink.seqs()).toEqual([1]);
        });
      });

      it('[H4] a sink that throws harms neither the other sinks nor the publisher', async () => {
        const [before, after] = [recorder(), recorder()];
        await listen(bus, 1, before);
        await listen(bus, 1, {
          hint: () => {
            throw new Error('a broken sink');
          },
          resync: () => undefined,
        });
        await listen(bus, 1, after);
        publish(bus, 1, 1);
        publish(bus, 1, 2);
        await settle(bus);
        expect(before.seqs()).toEqual([1, 2]);
        expect(after.seqs()).toEqual([1, 2]);
      });

      it('after it was disposed it publishes nothing and refuses to listen', async () => {
        const sink = recorder();
        await listen(bus, 1, sink);
        await bus[Symbol.asyncDispose]();
        publish(bus, 1, 1);
        await expect(listen(bus, 1, recorder())).rejects.toThrow('the hint bus is closed');
        expect(sink.hints).toEqual([]);
      });
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

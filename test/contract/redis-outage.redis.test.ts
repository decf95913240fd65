// Whatever happens to Redis or to the network, a sink gets each hint or is told to resync after it (H3).
import { describe, expect, it } from 'vitest';
import type { HintBus, HintSink } from '../../src/hints/bus.js';
import type { RedisBusOptions } from '../../src/hints/redis.js';
import { ana, ben, conv, message, recorder } from '../hints/samples.js';
import { startProxy } from '../support/proxy.js';
import { admin, isUp, node, prefix, redis, until, withPrivateRedis } from './redis-nodes.js';

const room = conv(1);
/** For what only the heartbeat can notice; a busy machine may look silent to it, which costs a resync. */
const hurried = { heartbeatMs: 100, heartbeatMissMs: 500 } as const;

withPrivateRedis();

/** The log of the room, and clients that know it by the hints of one channel: a resync makes them ask for the head now. */
class Room {
  head = 0;
  readonly clients: { known: number; resyncs: number }[] = [];

  client(): HintSink {
    const client = { known: 0, resyncs: 0 };
    this.clients.push(client);
    return {
      hint: (hint) => {
        if (hint.kind === 'message') client.known = Math.max(client.known, hint.seq);
      },
      resync: () => {
        client.known = this.head;
        client.resyncs++;
      },
    };
  }

  /** Commits and publishes until the work is done, as fast as the event loop turns. */
  async busyWhile(work: Promise<unknown>, ...publishers: HintBus[]): Promise<void> {
    const done = new AbortController();
    const finished = work.finally(() => {
      done.abort();
    });
    while (!done.signal.aborted) {
      for (const bus of publishers) {
        const hint = message(room, ++this.head);
        bus.publish([ana], hint);
        bus.publishToConv(hint);
      }
      await new Promise(setImmediate);
    }
    await finished;
  }

  /** Nothing more is published: what the clients miss now they would miss for ever. */
  async everyClientKnows(): Promise<void> {
    await until(() => {
      expect(this.clients.map(({ known }) => known)).toEqual(this.clients.map(() => this.head));
    });
  }

  async everyClientResynced(): Promise<void> {
    await until(() => {
      expect(this.clients.filter(({ resyncs }) => resyncs === 0)).toEqual([]);
    });
  }
}

async function twoNodesWithAna(
  options: Partial<RedisBusOptions> = {},
): Promise<{ nodes: [HintBus, HintBus]; log: Room }> {
  const nodes: [HintBus, HintBus] = [node(options), node(options)];
  const log = new Room();
  for (const bus of nodes) {
    for (let n = 0; n < 3; n++) await bus.listen(ana, log.client());
    await bus.listenToConv(room, log.client()); // which knows nothing of ana's channel (H7)
  }
  return { nodes, log };
}

describe('redis hint bus, when things break', () => {
  it('[H3] Redis is killed and comes back empty while both nodes publish: every sink resyncs and none stays behind', async () => {
    const { nodes, log } = await twoNodesWithAna();
    await redis.kill('SIGKILL');
    await log.busyWhile(
      until(() => {
        expect(nodes.map((bus) => bus.state)).toEqual(['down', 'down']);
      }),
      ...nodes,
    );
    await log.busyWhile(
      redis.restart().then(() => isUp(...nodes)),
      ...nodes,
    );
    await log.everyClientKnows();
    await log.everyClientResynced();
    await log.busyWhile(new Promise(setImmediate), ...nodes);
    await log.everyClientKnows();
  });

  it('[H3] Redis restarts five times in a row under publishing', async () => {
    const { nodes, log } = await twoNodesWithAna();
    for (let n = 0; n < 5; n++) await log.busyWhile(redis.restart(), ...nodes);
    await isUp(...nodes);
    await log.everyClientKnows();
    await log.everyClientResynced();
  });

  it('[H3] Redis stops answering without a word: the heartbeat notices, and none stays behind', async () => {
    const { nodes, log } = await twoNodesWithAna(hurried);
    await redis.kill('SIGSTOP');
    await log.busyWhile(
      until(() => {
        expect(nodes.map((bus) => bus.state)).toEqual(['down', 'down']);
      }),
      ...nodes,
    );
    await redis.kill('SIGCONT');
    await isUp(...nodes);
    await log.everyClientKnows();
    await log.everyClientResynced();
  });

  it('[H3] the listening connections are cut while both nodes publish', async () => {
    const { nodes, log } = await twoNodesWithAna();
    await log.busyWhile(
      admin(async (client) => {
        expect(await client.client('KILL', 'TYPE', 'pubsub')).toBeGreaterThanOrEqual(2);
      }).then(() => log.everyClientResynced()),
      ...nodes,
    );
    await isUp(...nodes);
    await log.everyClientKnows();
  });

  it('[H3] the publishing connection alone is cut: what was under way is made up for by a resync on every node', async () => {
    const { nodes, log } = await twoNodesWithAna();
    for (let n = 0; n < 10; n++) {
      await log.busyWhile(
        admin((client) => client.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
        ...nodes,
      );
      await log.everyClientKnows();
    }
  });

  it('[H3] a network that swallows everything is noticed by its silence', async () => {
    await using network = await startProxy(() => redis.url);
    const behind = node({ url: network.through(redis.url), ...hurried });
    const log = new Room();
    await behind.listen(ana, log.client());
    const direct = node();
    await isUp(behind, direct);
    network.set('drop');
    network.set('pass');
    await log.busyWhile(log.everyClientResynced(), direct);
    await isUp(behind);
    await log.everyClientKnows();
  });

  it('[H2] without Redis creating and publishing work, listening says why it cannot; once it is there all is well', async () => {
    await redis.kill('SIGKILL');
    const bus = node({ listenTimeoutMs: 200 });
    expect(bus.state).toBe('down');
    bus.publish([ana], message(room, 1));
    await expect(bus.listen(ana, recorder())).rejects.toThrow('the hint bus did not confirm within 200 ms');
    expect(bus.stats()).toEqual({ sinks: 0, channels: 0 });

    const patient = node({ listenTimeoutMs: 15_000 });
    const sink = recorder();
    const waiting = patient.listen(ana, sink);
    await redis.restart();
    await waiting;
    await isUp(bus, patient);
    bus.publish([ana], message(room, 2));
    await until(() => {
      expect(sink.seqs()).toEqual([2]);
    });
  });

  it('[H2] listenings that come and go while Redis is away leave nothing behind', async () => {
    const bus = node({ listenTimeoutMs: 50 });
    const sink = recorder();
    await isUp(bus);
    await bus.listen(ana, sink);
    await redis.kill('SIGKILL');
    await until(() => {
      expect(bus.state).toBe('down');
    });
    const answers = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) => bus.listen(n % 2 ? ana : ben, recorder())),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(['rejected']));
    await until(() => {
      expect(bus.stats()).toEqual({ sinks: 1, channels: 1 });
    });
    await redis.restart();
    await until(() => {
      expect(sink.resyncs).toContain('BUS');
    });
  });

  it('[H2] a refused SUBSCRIBE is tried again until it is allowed', async () => {
    const bus = node({ listenTimeoutMs: 200 });
    const patient = node({ listenTimeoutMs: 15_000 });
    await isUp(bus, patient);
    // The bus's own channels stay allowed, so that the connection lives on.
    const own = [`&${prefix}resync`, `&${prefix}beat:*`];
    await admin((client) => client.acl('SETUSER', 'default', 'resetchannels', ...own));
    await expect(bus.listen(ana, recorder())).rejects.toThrow('did not confirm');
    const waiting = patient.listen(ana, recorder());
    await admin((client) => client.acl('SETUSER', 'default', 'allchannels'));
    (await waiting).stop();
  });

  it('dispose works while Redis is away, and ends those who wait to listen', async () => {
    const bus = node({ listenTimeoutMs: 15_000 });
    await isUp(bus);
    await redis.kill('SIGKILL');
    await until(() => {
      expect(bus.state).toBe('down');
    });
    const refused = expect(bus.listen(ana, recorder())).rejects.toThrow('the hint bus is closed');
    await bus[Symbol.asyncDispose]();
    await refused;
    await redis.restart();
  });
});

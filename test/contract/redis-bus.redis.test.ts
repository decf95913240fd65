// The Redis bus keeps the contract of every bus, and its own promise on top: whatever happens to Redis or to the network,
// a sink gets each hint or is told to resync after it, and nothing ever rejects unhandled.
import { randomUUID } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HintBus, HintSink } from '../../src/hints/bus.js';
import { createRedisBus, type RedisBusOptions } from '../../src/hints/redis.js';
import { ana, ben, conv, message, recorder } from '../hints/samples.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { busContract } from './bus-contract.js';

const room = conv(1);
const silent = { info: () => undefined, warn: () => undefined };
const hurried = { heartbeatMs: 100, heartbeatMissMs: 500, listenTimeoutMs: 3_000 } as const;

let redis: TestRedis;
let prefix: string;
const buses: HintBus[] = [];
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);

beforeAll(async () => {
  process.on('unhandledRejection', onUnhandled);
  redis = await startRedis();
});

beforeEach(() => {
  prefix = `tm:${randomUUID()}:`;
});

afterEach(async () => {
  await Promise.all(buses.splice(0).map((bus) => bus[Symbol.asyncDispose]()));
  expect(unhandled).toEqual([]);
});

afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  process.off('unhandledRejection', onUnhandled);
});

function node(options: Partial<RedisBusOptions> = {}): HintBus {
  const bus = createRedisBus({ url: redis.url, prefix, log: silent, ...hurried, ...options });
  buses.push(bus);
  return bus;
}

async function until(check: () => void | Promise<void>): Promise<void> {
  await vi.waitFor(check, { timeout: 15_000, interval: 10 });
}

const isUp = (...nodes: HintBus[]): Promise<void> =>
  until(() => {
    expect(nodes.map((bus) => bus.state)).toEqual(nodes.map(() => 'up'));
  });

/** The log of the room, and clients that know it by hints alone: a resync makes them ask, which tells the head now. */
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
      for (const bus of publishers) bus.publish([ana], message(room, ++this.head));
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

async function admin<T>(act: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(redis.url);
  try {
    return await act(client);
  } finally {
    client.disconnect();
  }
}

async function twoNodesWithAna(): Promise<{ nodes: [HintBus, HintBus]; log: Room }> {
  const nodes: [HintBus, HintBus] = [node(), node()];
  const log = new Room();
  for (const bus of nodes) for (let n = 0; n < 3; n++) await bus.listen(ana, log.client());
  return { nodes, log };
}

busContract('redis', () => node());

describe('redis hint bus, several nodes', () => {
  it('[H6] hints go both ways between two nodes', async () => {
    const [one, two] = [node(), node()];
    const [onOne, onTwo] = [recorder(), recorder()];
    await one.listen(ana, onOne);
    await two.listen(ana, onTwo);
    one.publish([ana], message(room, 1));
    await until(() => {
      expect([onOne.seqs(), onTwo.seqs()]).toEqual([[1], [1]]);
    });
    two.publish([ana], message(room, 2));
    await until(() => {
      expect([onOne.seqs(), onTwo.seqs()]).toEqual([
        [1, 2],
        [1, 2],
      ]);
    });
    expect([onOne.resyncs, onTwo.resyncs]).toEqual([[], []]);
  });

  it('[H6] databases of another generation hear nothing', async () => {
    const [here, there] = [node(), node({ prefix: `tm:${randomUUID()}:` })];
    const [mine, foreign] = [recorder(), recorder()];
    await here.listen(ana, mine);
    await there.listen(ana, foreign);
    here.publish([ana], message(room, 1));
    await until(() => {
      expect(mine.seqs()).toEqual([1]);
    });
    there.publish([ana], message(room, 2));
    await until(() => {
      expect(foreign.seqs()).toEqual([2]);
    });
    expect(mine.seqs()).toEqual([1]);
  });

  it('all sinks of a user share one Redis subscription, which ends with the last', async () => {
    const bus = node();
    const subscribers = () => admin((client) => client.pubsub('NUMSUB', `${prefix}u:ana`));
    const listenings = await Promise.all([1, 2, 3].map(() => bus.listen(ana, recorder())));
    expect(bus.stats()).toEqual({ sinks: 3, channels: 1 });
    expect(await subscribers()).toEqual([`${prefix}u:ana`, 1]);
    for (const listening of listenings) listening.stop();
    await until(async () => {
      expect(await subscribers()).toEqual([`${prefix}u:ana`, 0]);
    });
  });

  it('[H3] what cannot be read becomes a resync of that user, and later hints flow', async () => {
    const bus = node();
    const [sink, other] = [recorder(), recorder()];
    await bus.listen(ana, sink);
    await bus.listen(ben, other);
    const texts = ['{"v":2,"kind":"message"}', '{"v":1,"kind":"typing"}', 'not json', '', 'null', '[1]'];
    await admin(async (client) => {
      for (const text of texts) await client.publish(`${prefix}u:ana`, text);
    });
    bus.publish([ana, ben], message(room, 1));
    await until(() => {
      expect([sink.seqs(), other.seqs()]).toEqual([[1], [1]]);
    });
    expect(sink.resyncs).toEqual(texts.map(() => 'VERSION'));
    expect(other.resyncs).toEqual([]);
  });

  it('a disposed bus leaves no connection behind', async () => {
    const connections = () => admin(async (client) => String(await client.client('LIST')).match(/name=tidemark-/g));
    await until(async () => {
      expect(await connections()).toBeNull();
    });
    const bus = node();
    await bus.listen(ana, recorder());
    expect((await connections())?.length).toBe(2);
    await bus[Symbol.asyncDispose]();
    await until(async () => {
      expect(await connections()).toBeNull();
    });
  });
});

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
    const { nodes, log } = await twoNodesWithAna();
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
    const network = await startNetwork(Number(new URL(redis.url).port));
    const behind = node({ url: network.url });
    const log = new Room();
    await behind.listen(ana, log.client());
    const direct = node();
    await isUp(behind, direct);
    network.swallow();
    await log.busyWhile(log.everyClientResynced(), direct);
    await isUp(behind);
    await log.everyClientKnows();
    network.close();
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

/** A way to Redis that can begin to swallow what goes through the connections it has, without closing them. */
async function startNetwork(port: number): Promise<{ url: string; swallow(): void; close(): void }> {
  const sockets = new Set<Socket>();
  // Half-open: a network that is gone does not say goodbye either.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `redis://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    swallow: () => {
      for (const socket of sockets) socket.unpipe().removeAllListeners('end').resume();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

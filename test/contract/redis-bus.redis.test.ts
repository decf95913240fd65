// The Redis bus keeps the contract of every bus, between several nodes too.
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ana, ben, conv, message, recorder } from '../hints/samples.js';
import { busContract } from './bus-contract.js';
import { admin, node, prefix, until, withPrivateRedis } from './redis-nodes.js';

const room = conv(1);

withPrivateRedis();

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

  it.each([
    ['of another prefix', () => [node(), node({ prefix: `tm:${randomUUID()}:` })] as const],
    ['of another generation', () => [node(), node()] as const],
  ])('[H6] [L8] databases %s hear nothing', async (_, nodes) => {
    const [here, there] = nodes();
    here.enter('here');
    there.enter('there');
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

  it('[L8] while some nodes have noticed the restore and others have not, no hint is lost without a resync after it', async () => {
    const [early, late] = [node(), node()];
    const [onEarly, onLate] = [recorder(), recorder()];
    for (const bus of [early, late]) bus.enter('before');
    await early.listen(ana, onEarly);
    await late.listen(ana, onLate);
    early.enter('after');
    late.publish([ana], message(room, 1)); // written to the restored database as well
    await until(() => {
      expect([onEarly.seqs(), onLate.seqs()]).toEqual([[1], [1]]);
    });
    early.publish([ana], message(room, 2));
    await until(() => {
      expect(onEarly.seqs()).toEqual([1, 2]);
    });
    expect(onLate.resyncs).toEqual([]);
    late.enter('after');
    expect(onLate.resyncs).toEqual(['RESTORED']);
    late.publish([ana], message(room, 3));
    await until(() => {
      expect([onEarly.seqs(), onLate.seqs().at(-1)]).toEqual([[1, 2, 3], 3]);
    });
    expect(onEarly.resyncs).toEqual(['RESTORED']);
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

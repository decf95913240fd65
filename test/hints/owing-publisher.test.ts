import { beforeEach, describe, expect, it } from 'vitest';
import { OwingPublisher } from '../../src/hints/owing-publisher.js';

let sent: string[];
let answer: (channel: string) => Promise<void>;
let publisher: OwingPublisher;

const yes = (): Promise<void> => Promise.resolve();
const no = (): Promise<void> => Promise.reject(new Error('Redis is away'));
const never = (): Promise<void> => new Promise(() => undefined);
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  sent = [];
  answer = yes;
  publisher = new OwingPublisher({
    publish: (channel) => {
      sent.push(channel);
      return answer(channel);
    },
    resyncChannel: 'resync',
    log: { info: () => undefined, warn: () => undefined },
  });
});

describe('OwingPublisher', () => {
  it('[H3] without a failure a beat says nothing more', async () => {
    publisher.send('u', '1');
    await publisher.beat('beat');
    expect(sent).toEqual(['u', 'beat']);
  });

  it('[H3] a failed hint is made up for once, at the first beat that gets through', async () => {
    answer = no;
    publisher.send('u', '1');
    await settled();
    await publisher.beat('beat');
    answer = yes;
    await publisher.beat('beat');
    await publisher.beat('beat');
    expect(sent).toEqual(['u', 'beat', 'beat', 'resync', 'beat']);
  });

  it('[H3] a resync that fails is owed again', async () => {
    answer = no;
    publisher.send('u', '1');
    await settled();
    answer = (channel) => (channel === 'resync' ? no() : yes());
    await publisher.beat('beat');
    await settled();
    answer = yes;
    await publisher.beat('beat');
    expect(sent).toEqual(['u', 'beat', 'resync', 'beat', 'resync']);
  });

  it('[H3] a hint under way when the connection breaks counts as lost', async () => {
    publisher.broken();
    await publisher.beat('beat');
    answer = never;
    publisher.send('u', '1');
    publisher.broken();
    answer = yes;
    await publisher.beat('beat');
    expect(sent).toEqual(['beat', 'u', 'beat', 'resync']);
  });

  it('[H1] a Redis that never answers costs bounded memory', async () => {
    answer = never;
    for (let n = 0; n < 60_000; n++) publisher.send('u', '1');
    expect(sent.length).toBe(50_000);
    answer = yes;
    await publisher.beat('beat');
    expect(sent.length).toBe(50_001); // the resync, too, waits until there is room
  });
});

// What Redis says and when, played by hand: the moments that a real server gives only by chance.
import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { AckedSubscriber } from '../../src/hints/acked-subscriber.js';

interface Answer {
  readonly channel: string;
  confirm(): void;
  refuse(error: Error): void;
}

class ScriptedConnection {
  status = 'connecting';
  readonly #events = new EventEmitter();
  readonly subscribes: Answer[] = [];
  readonly unsubscribes: Answer[] = [];

  readonly subscribe = (channel: string): Promise<unknown> => ask(channel, this.subscribes);
  readonly unsubscribe = (channel: string): Promise<unknown> => ask(channel, this.unsubscribes);

  on(event: string, listener: () => void): void {
    this.#events.on(event, listener);
  }

  become(status: 'ready' | 'close'): void {
    this.status = status;
    this.#events.emit(status);
  }
}

function ask(channel: string, answers: Answer[]): Promise<unknown> {
  return new Promise<void>((confirm, refuse) => {
    answers.push({ channel, confirm, refuse });
  });
}

interface Facade {
  subscribe(channel: string, done: (error: null) => void): void;
  unsubscribe(channel: string): void;
}

let connection: ScriptedConnection;
let restored: string[];
let subscriber: AckedSubscriber;
let facade: Facade;
const ignore = (): void => undefined;
const log = { info: vi.fn(), warn: vi.fn() };

beforeEach(() => {
  connection = new ScriptedConnection();
  restored = [];
  subscriber = new AckedSubscriber({ connection, log, onRestored: (channel) => void restored.push(channel) });
  facade = subscriber.facade() as Facade;
});

async function isLive(channel: string): Promise<boolean> {
  let live = false;
  subscriber.live(channel, 60_000).then(() => (live = true), ignore);
  await new Promise(setImmediate);
  return live;
}

describe('AckedSubscriber', () => {
  it('[H2] a channel wanted before the connection is there is live once it has been confirmed', async () => {
    facade.subscribe('a', ignore);
    expect(connection.subscribes).toEqual([]);
    connection.become('ready');
    expect([await isLive('a'), subscriber.up]).toEqual([false, false]);
    connection.subscribes[0]?.confirm();
    expect([await isLive('a'), subscriber.up, restored]).toEqual([true, true, []]);
    subscriber.close();
  });

  it('[H3] after a break each channel is reported when it is confirmed anew, not before', async () => {
    connection.become('ready');
    for (const channel of ['a', 'b']) facade.subscribe(channel, ignore);
    for (const answer of connection.subscribes.splice(0)) answer.confirm();
    expect(await isLive('b')).toBe(true);
    connection.become('close');
    expect([await isLive('a'), subscriber.up]).toEqual([false, false]);
    connection.become('ready');
    connection.subscribes[1]?.confirm();
    expect([await isLive('a'), await isLive('b'), subscriber.up, restored]).toEqual([false, true, false, ['b']]);
    connection.subscribes[0]?.confirm();
    expect([await isLive('a'), subscriber.up, restored]).toEqual([true, true, ['b', 'a']]);
  });

  it('[H2] a confirmation that belongs to the connection before is not believed', async () => {
    connection.become('ready');
    facade.subscribe('a', ignore);
    const [old] = connection.subscribes;
    connection.become('close');
    old?.confirm();
    expect(await isLive('a')).toBe(false);
    subscriber.close();
  });

  it('[H2] a confirmation of an earlier SUBSCRIBE does not count for a later one', async () => {
    connection.become('ready');
    facade.subscribe('a', ignore);
    facade.unsubscribe('a');
    facade.subscribe('a', ignore);
    const [first, second] = connection.subscribes;
    first?.confirm();
    expect(await isLive('a')).toBe(false);
    second?.confirm();
    expect(await isLive('a')).toBe(true);
  });

  it('[H3] a channel lost twice before it came back is still reported, once', async () => {
    connection.become('ready');
    facade.subscribe('a', ignore);
    connection.subscribes.shift()?.confirm();
    expect(await isLive('a')).toBe(true);
    connection.become('close');
    connection.become('ready');
    connection.become('close');
    connection.become('ready');
    for (const answer of connection.subscribes) answer.confirm();
    await isLive('a');
    expect(restored).toEqual(['a']);
  });

  it('a failed UNSUBSCRIBE harms nobody', async () => {
    connection.become('ready');
    facade.subscribe('a', ignore);
    facade.unsubscribe('a');
    connection.unsubscribes[0]?.refuse(new Error('gone'));
    await new Promise(setImmediate);
    expect(log.warn).toHaveBeenCalledWith(expect.objectContaining({ channel: 'a' }), 'UNSUBSCRIBE failed');
  });

  it('[H2] who waited too long is told so, and who waits at the end is told that it is over', async () => {
    facade.subscribe('a', ignore);
    await expect(subscriber.live('a', 1)).rejects.toThrow('did not confirm within 1 ms');
    const waiting = expect(subscriber.live('a', 60_000)).rejects.toThrow('the hint bus is closed');
    subscriber.close();
    await waiting;
    await expect(subscriber.live('a', 60_000)).rejects.toThrow('the hint bus is closed');
  });
});

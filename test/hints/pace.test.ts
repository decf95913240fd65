import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Mailbox } from '../../src/hints/mailbox.js';
import { Pace } from '../../src/hints/pace.js';
import type { MessageHint } from '../../src/model.js';
import { conv, message, recall } from './samples.js';

const [room, other] = [conv(1), conv(2)];
let sent: MessageHint[];
let pace: Pace;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  pace = new Pace({ everyMs: 100, send: (hint) => void sent.push(hint) });
});
afterEach(() => {
  vi.useRealTimers();
});

const seqs = () => sent.map(({ seq }) => seq);

describe('the pace of a conversation’s channel', () => {
  it('[H7] the first hint goes at once, the newest of what follows once per interval', () => {
    for (let seq = 1; seq <= 5; seq++) pace.put(message(room, seq));
    expect(seqs()).toEqual([1]);
    vi.advanceTimersByTime(99);
    expect(seqs()).toEqual([1]);
    vi.advanceTimersByTime(1);
    expect(seqs()).toEqual([1, 5]);
    pace.put(message(room, 6));
    vi.advanceTimersByTime(99);
    expect(seqs()).toEqual([1, 5]);
    vi.advanceTimersByTime(1);
    expect(seqs()).toEqual([1, 5, 6]);
  });

  it('[H7] after a quiet interval the next goes at once, and nothing keeps running', () => {
    pace.put(message(room, 1));
    vi.advanceTimersByTime(100);
    expect(vi.getTimerCount()).toBe(0);
    pace.put(message(room, 2));
    expect(seqs()).toEqual([1, 2]);
  });

  it('[H7] conversations do not wait for each other', () => {
    pace.put(message(room, 1));
    pace.put(message(other, 1));
    expect(sent.map((hint) => hint.conv)).toEqual([room, other]);
  });

  it('[H4] what is merged is what a mailbox merges: kinds stay apart, and no recalled target is lost', async () => {
    const hints = [
      message(room, 2),
      message(room, 3, 'MEMBERSHIP'),
      recall(room, 4, 2),
      message(room, 5),
      ...Array.from({ length: 40 }, (_, n) => recall(room, n + 6, n + 100)),
      message(room, 50, 'MEMBERSHIP'),
      message(room, 49),
    ];
    pace.put(message(room, 1));
    for (const hint of hints) pace.put(hint);
    vi.advanceTimersByTime(100);
    const recalled = sent.flatMap(({ target }) => (target === null ? [] : [target]));
    expect(recalled).toEqual([2, ...Array.from({ length: 40 }, (_, n) => n + 100)]);
    const mailbox = new Mailbox();
    const few = hints.filter(({ target }) => target === null || target < 120);
    for (const hint of few) mailbox.hint(hint);
    const merged = [];
    while (mailbox.size > 0) merged.push((await mailbox.next()).value);
    expect(sent.slice(1).filter(({ target }) => target === null || target < 120)).toEqual(merged);
  });

  it('[H7] what waits at the end is sent', async () => {
    pace.put(message(room, 1));
    pace.put(message(room, 2));
    await pace[Symbol.asyncDispose]();
    expect(seqs()).toEqual([1, 2]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

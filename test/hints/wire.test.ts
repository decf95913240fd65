import { describe, expect, it } from 'vitest';
import { fromWire, toWire } from '../../src/hints/wire.js';
import type { BusHint } from '../../src/model.js';
import { conv, convChange, message, read, recall } from './samples.js';

const room = conv(1);
const device: BusHint = { kind: 'device', device: 'phone' as never, installEpoch: 2, reason: 'STALE_INSTALL' };
const all: readonly BusHint[] = [
  message(room, 3),
  recall(room, 4, 3),
  { ...read(room, 2, 5), change: 7 },
  convChange(room),
  device,
];

const over = (hint: BusHint): unknown => JSON.parse(toWire(hint));

describe('wire', () => {
  it.each(all.map((hint) => [hint.kind, hint] as const))('[H1] a %s hint survives the way', (_, hint) => {
    expect(fromWire(over(hint))).toEqual(hint);
  });

  it('[H1] a body never travels, even if a hint should hold one', () => {
    const careless = { ...message(room, 3), content: { text: 'for ben only' } };
    expect(toWire(careless)).not.toContain('for ben only');
  });

  it('[H3] another version, an unknown kind or word, a missing field and plain garbage are unreadable', () => {
    const good = over(message(room, 3)) as Record<string, unknown>;
    const headless = Object.fromEntries(Object.entries(good).filter(([field]) => field !== 'head'));
    const numberless = Object.fromEntries(Object.entries(good).filter(([field]) => field !== 'change'));
    const unreadable: readonly unknown[] = [
      { ...good, v: 1 },
      { ...good, v: 3 },
      { ...good, v: undefined },
      { ...good, kind: 'typing' },
      { ...good, kind: 'toString' },
      { ...good, eventKind: 'POLL' },
      { ...good, conversationType: 'NONE' },
      { ...good, seq: '3' },
      { ...good, seq: -1 },
      { ...good, seq: 1.5 },
      headless,
      numberless,
      { ...good, change: '7' },
      'not json',
      null,
      undefined,
      7,
      [],
    ];
    expect(unreadable.map(fromWire)).toEqual(unreadable.map(() => null));
    expect(fromWire(good)).toEqual(message(room, 3));
  });

  it('fields of a later node are ignored', () => {
    expect(fromWire({ ...(over(read(room, 1, 2)) as object), thread: 9 })).toEqual(read(room, 1, 2));
  });
});

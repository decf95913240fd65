// The mailbox by example; mailbox.property.test.ts has the law.
import { describe, expect, it, vi } from 'vitest';
import { Mailbox } from '../../src/hints/mailbox.js';
import type { Hint, Resync } from '../../src/model.js';
import { ana, broadcast, conv, convChange, message, read, recall } from './samples.js';

const room = conv(1);
const other = conv(2);

async function drain(mailbox: Mailbox): Promise<(Hint | Resync)[]> {
  const items: (Hint | Resync)[] = [];
  while (mailbox.size > 0) {
    const { value, done } = await mailbox.next();
    if (!done) items.push(value);
  }
  return items;
}

const overflow: Resync = { kind: 'resync', reason: 'OVERFLOW' };

describe('Mailbox', () => {
  it('[H2] the first item is the resync it was made with', async () => {
    const mailbox = new Mailbox({ first: 'START' });
    mailbox.hint(message(room, 1));
    expect(await drain(mailbox)).toEqual([{ kind: 'resync', reason: 'START' }, message(room, 1)]);
  });

  it('[H4] messages of a conversation keep the newest, whatever the order of arrival', async () => {
    const mailbox = new Mailbox();
    for (const seq of [1, 3, 2]) mailbox.hint(message(room, seq));
    mailbox.hint(message(other, 9));
    expect(await drain(mailbox)).toEqual([message(room, 3), message(other, 9)]);
  });

  it('[X3] [H4] typing of one user is one; other signals are kept apart, at most 32 of a conversation, the oldest go', async () => {
    const mailbox = new Mailbox();
    const signal = (contentType: string, sentAt: number) => ({
      ...broadcast,
      conv: room,
      sender: ana,
      contentType,
      sentAt,
    });
    for (let n = 1; n <= 3; n++) mailbox.hint(signal('TYPING', n));
    expect(await drain(mailbox)).toEqual([signal('TYPING', 3)]);
    mailbox.hint(message(room, 1));
    for (let n = 1; n <= 50; n++) mailbox.hint(signal('CALL', n));
    expect(mailbox.size).toBe(33);
    const kept = Array.from({ length: 32 }, (_, n) => signal('CALL', n + 19));
    expect(await drain(mailbox)).toEqual([message(room, 1), ...kept]);
  });

  it('[H4] an older message that knows a larger head passes it on', async () => {
    const mailbox = new Mailbox();
    mailbox.hint(message(room, 3));
    mailbox.hint({ ...message(room, 2), head: 5 });
    expect(await drain(mailbox)).toEqual([{ ...message(room, 3), head: 5 }]);
  });

  it('[H4] a message never replaces another kind, and the seqs of a conversation come out ascending', async () => {
    const mailbox = new Mailbox();
    mailbox.hint(message(room, 1));
    mailbox.hint(message(room, 2, 'MEMBERSHIP'));
    mailbox.hint(recall(room, 3, 1));
    mailbox.hint(message(room, 4, 'NOTICE'));
    mailbox.hint(message(room, 5, 'CALL'));
    mailbox.hint(message(room, 6, 'MEMBERSHIP'));
    mailbox.hint(message(room, 7));
    expect(await drain(mailbox)).toEqual([
      recall(room, 3, 1),
      message(room, 4, 'NOTICE'),
      message(room, 5, 'CALL'),
      message(room, 6, 'MEMBERSHIP'),
      message(room, 7),
    ]);
  });

  it('[H4] reads keep the largest, on the same read the largest head, on the same both the newest', async () => {
    const mailbox = new Mailbox();
    mailbox.hint(read(room, 5, 9));
    mailbox.hint(read(room, 4, 10));
    mailbox.hint(read(room, 5, 8));
    expect(await drain(mailbox)).toEqual([read(room, 5, 9)]);
    mailbox.hint(read(room, 5, 9, 4));
    mailbox.hint(read(room, 5, 9, 3));
    expect(await drain(mailbox)).toEqual([read(room, 5, 9, 3)]);
  });

  it('[H4] conversation changes keep the newest, beside messages and reads', async () => {
    const mailbox = new Mailbox();
    mailbox.hint(convChange(room, 'TITLE'));
    mailbox.hint(message(room, 1));
    mailbox.hint(read(room, 1, 1));
    mailbox.hint(convChange(room, 'SETTINGS'));
    expect(await drain(mailbox)).toEqual([message(room, 1), read(room, 1, 1), convChange(room, 'SETTINGS')]);
  });

  it('[H4] 32 recalled targets of a conversation wait, the 33rd collapses everything into one resync', async () => {
    const mailbox = new Mailbox();
    for (let target = 1; target <= 32; target++) mailbox.hint(recall(room, 100 + target, target));
    mailbox.hint(recall(room, 140, 32));
    mailbox.hint(recall(other, 9, 1));
    mailbox.hint(message(other, 10));
    expect(mailbox.size).toBe(34);
    mailbox.hint(recall(room, 141, 33));
    expect(await drain(mailbox)).toEqual([overflow]);
  });

  it('[H4] more than maxSlots collapse into one resync, and what comes later follows it', async () => {
    const mailbox = new Mailbox({ maxSlots: 3 });
    for (let n = 1; n <= 4; n++) mailbox.hint(message(conv(n), 1));
    mailbox.hint(message(room, 2));
    expect(await drain(mailbox)).toEqual([overflow, message(room, 2)]);
  });

  it('[H3] a resync swallows what is older, an earlier resync too', async () => {
    const mailbox = new Mailbox({ first: 'START' });
    mailbox.hint(message(room, 1));
    mailbox.resync('BUS');
    mailbox.hint(message(room, 2));
    expect(await drain(mailbox)).toEqual([{ kind: 'resync', reason: 'BUS' }, message(room, 2)]);
  });

  it('[H4] a busy conversation does not keep the others waiting', async () => {
    const mailbox = new Mailbox();
    mailbox.hint(message(room, 1));
    mailbox.hint(message(room, 2, 'MEMBERSHIP'));
    mailbox.hint(message(other, 1));
    expect((await mailbox.next()).value).toEqual(message(room, 1));
    mailbox.hint(message(room, 3));
    expect((await mailbox.next()).value).toEqual(message(other, 1));
  });

  it('keeps only what the subscriber accepts, but every resync', async () => {
    const mailbox = new Mailbox({ accepts: (hint) => hint.kind === 'read' });
    mailbox.resync('MODE');
    mailbox.hint(message(room, 1));
    mailbox.hint(read(room, 1, 1));
    expect(await drain(mailbox)).toEqual([{ kind: 'resync', reason: 'MODE' }, read(room, 1, 1)]);
  });

  it('[I4] a device hint never enters it', () => {
    const mailbox = new Mailbox();
    mailbox.hint({ kind: 'device', device: 'phone' as never, installEpoch: 2, reason: 'STALE_INSTALL' });
    expect(mailbox.size).toBe(0);
  });

  it('readers that wait are served in order', async () => {
    const mailbox = new Mailbox();
    const items = [mailbox.next(), mailbox.next()];
    mailbox.hint(message(room, 1));
    mailbox.hint(message(room, 2));
    expect(await Promise.all(items)).toEqual([
      { done: false, value: message(room, 1) },
      { done: false, value: message(room, 2) },
    ]);
  });

  it('return() ends every pending next() at once and closes exactly once', async () => {
    const onClose = vi.fn();
    const mailbox = new Mailbox({ onClose });
    const pending = [mailbox.next(), mailbox.next()];
    await mailbox.return();
    await mailbox[Symbol.asyncDispose]();
    expect(await Promise.all(pending)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    expect(onClose).toHaveBeenCalledTimes(1);
  });

  it('after return() it holds nothing, takes nothing and every next() is done', async () => {
    const mailbox = new Mailbox({ first: 'START' });
    mailbox.hint(message(room, 1));
    await mailbox.return();
    mailbox.hint(message(room, 2));
    mailbox.resync('BUS');
    expect(mailbox.size).toBe(0);
    expect(await mailbox.next()).toEqual({ done: true, value: undefined });
  });

  it('throw() closes it and hands the error back', async () => {
    const onClose = vi.fn();
    const mailbox = new Mailbox({ onClose });
    const pending = mailbox.next();
    await expect(mailbox.throw(new Error('gone'))).rejects.toThrow('gone');
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(onClose).toHaveBeenCalledTimes(1);
  });

  it('leaving a for-await loop closes it', async () => {
    const onClose = vi.fn();
    const mailbox = new Mailbox({ first: 'START', onClose });
    for await (const item of mailbox) {
      expect(item.kind).toBe('resync');
      break;
    }
    expect(onClose).toHaveBeenCalledTimes(1);
  });
});

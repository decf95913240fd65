// Hints and sinks for the tests of the hint bus and the mailbox.
import type {
  BusHint,
  ConvHint,
  ConvId,
  EventKind,
  MessageHint,
  ReadHint,
  ResyncReason,
  SignalHint,
  UserId,
} from '../../src/model.js';
import type { HintSink } from '../../src/hints/bus.js';

export const ana = 'ana' as UserId;
export const ben = 'ben' as UserId;
export const cho = 'cho' as UserId;
export const conv = (n: number): ConvId => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}` as ConvId;

const origin = { conversationType: 'GROUP', originDevice: null, change: null } as const;

export const message = (of: ConvId, seq: number, eventKind: EventKind = 'MESSAGE', target: number | null = null) =>
  ({
    ...origin,
    kind: 'message',
    conv: of,
    head: seq,
    seq,
    eventKind,
    contentType: eventKind === 'MESSAGE' ? 'TEXT' : eventKind,
    sender: ana,
    target,
  }) satisfies MessageHint;

export const recall = (of: ConvId, seq: number, target: number): MessageHint => message(of, seq, 'RECALL', target);

export const read = (of: ConvId, upTo: number, head: number, unread = head - upTo): ReadHint => ({
  ...origin,
  kind: 'read',
  conv: of,
  read: upTo,
  unread,
  head,
});

export const convChange = (of: ConvId, contentType = 'SETTINGS'): ConvHint => ({
  ...origin,
  kind: 'conv',
  conv: of,
  contentType,
});

export const broadcast: SignalHint = {
  kind: 'signal',
  conv: null,
  conversationType: 'NONE',
  contentType: 'BROADCAST',
  sender: null,
  originDevice: null,
  sentAt: 1,
  content: { notice: 'soon', more: [1, null] },
};

export interface Recorder extends HintSink {
  readonly hints: BusHint[];
  readonly resyncs: ResyncReason[];
  /** the seqs of the message hints, in the order of arrival */
  seqs(): number[];
}

export function recorder(): Recorder {
  const hints: BusHint[] = [];
  const resyncs: ResyncReason[] = [];
  return {
    hints,
    resyncs,
    hint: (hint) => void hints.push(hint),
    resync: (reason) => void resyncs.push(reason),
    seqs: () => hints.flatMap((hint) => (hint.kind === 'message' ? [hint.seq] : [])),
  };
}

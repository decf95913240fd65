// What each device durably holds (D1–D4). An ack moves no read position and is told to nobody.
import type { ConvId, Seq, Viewer } from '../model.js';
import { requireDevice } from './access.js';
import type { Deps } from './deps.js';
import { refusal } from './errors.js';
import { requireConvId } from './input.js';

export interface AckAnswer {
  readonly conv: ConvId;
  readonly delivered: Seq;
  readonly head: Seq;
}

export async function ack(deps: Deps, viewer: Viewer, input: { conv: string; seq: Seq }): Promise<AckAnswer> {
  const device = requireDevice(viewer);
  await deps.rates.spend('ack', device);
  const conv = requireConvId(input.conv);
  const { status, delivered, head } = await deps.store.delivery.ack(device, conv, input.seq);
  if (status !== 'ok') throw refusal(status, { head });
  return { conv, delivered, head };
}

// Pinned events of a group: references, resolved for each viewer (M1, L5).
import type { LogEvent, Seq, UserId, Viewer } from '../model.js';
import type { ConvId } from '../model.js';
import { requireMay } from './access.js';
import type { Deps } from './deps.js';
import { badInput, overLimit } from './errors.js';
import { requireConvId } from './input.js';
import { announceFact, underLock, type ConvAnswer } from './scene.js';

interface OnEvent {
  readonly conv: string;
  readonly seq: Seq;
}

export async function pinEvent(deps: Deps, viewer: Viewer, { conv: asked, seq }: OnEvent): Promise<ConvAnswer> {
  const id = requireConvId(asked);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('pinEvent', viewer, scene.conv, scene.actor);
    const pins = await scene.tx.groups.pins(id);
    if (pins.includes(seq)) return;
    if (!(await scene.tx.groups.isPinnable(id, seq, viewer.kind === 'service' ? null : viewer.user))) {
      throw badInput('the event is no message, is recalled, or is not visible to the viewer');
    }
    const { maxPins } = deps.limits;
    if (pins.length >= maxPins) throw overLimit('a group', maxPins, 'pinned events');
    await scene.tx.groups.pin(id, seq);
    await announceFact(deps, viewer, scene, conv, { contentType: 'MESSAGE_PIN', content: { seq } });
  });
}

export async function unpinEvent(deps: Deps, viewer: Viewer, { conv: asked, seq }: OnEvent): Promise<ConvAnswer> {
  const id = requireConvId(asked);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('unpinEvent', viewer, scene.conv, scene.actor);
    if (!(await scene.tx.groups.pins(id)).includes(seq)) return;
    await scene.tx.groups.unpin(id, seq);
    await announceFact(deps, viewer, scene, conv, { contentType: 'MESSAGE_UNPIN', content: { seq } });
  });
}

/** Newest pin first; those that this viewer may not see are left out. */
export const pins = (deps: Deps, user: UserId, conv: ConvId): Promise<readonly LogEvent[]> =>
  deps.loads.pins({ user, conv });

// What is true of a whole group, and its end: events in its log and `infoVersion`, never rows per member (C4).
import type { JoinPolicy, JsonObject, Viewer } from '../model.js';
import type { GroupFacts } from '../store/groups.js';
import { requireMay, requireService } from './access.js';
import type { ContentTypeName } from './content-types.js';
import type { Deps } from './deps.js';
import { requireConvId, requireShort, requireText, requireUrl } from './input.js';
import { announce, announceFact, underLock, type ConvAnswer } from './scene.js';

export interface UpdateConvInput {
  readonly conv: string;
  readonly title?: string | null | undefined;
  readonly notice?: string | null | undefined;
  readonly avatarUrl?: string | null | undefined;
  readonly joinPolicy?: JoinPolicy | null | undefined;
  readonly historyVisible?: boolean | null | undefined;
}

/** What is absent stays; null clears a notice or a picture. One event for each kind of change, none where nothing is new. */
export async function updateConv(deps: Deps, viewer: Viewer, input: UpdateConvInput): Promise<ConvAnswer> {
  const id = requireConvId(input.conv);
  const asked = requireFacts(deps, input);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('updateConv', viewer, scene.conv, scene.actor);
    const before = await scene.tx.groups.facts(id);
    const next = { ...before, ...asked };
    const told = newsOf(before, next);
    if (told.length === 0) return;
    await scene.tx.groups.setFacts(id, next);
    for (const { contentType, content } of told)
      await announceFact(deps, viewer, scene, conv, { contentType, content });
  });
}

function requireFacts({ limits }: Deps, input: UpdateConvInput): Partial<GroupFacts> {
  const { title, notice, avatarUrl, joinPolicy, historyVisible } = input;
  return {
    ...(title == null ? {} : { title: requireShort(title, 'title', 64) }),
    ...(notice === undefined
      ? {}
      : { notice: notice === null ? null : requireText(notice, 'notice', limits.maxNotice) }),
    ...(avatarUrl === undefined
      ? {}
      : { avatarUrl: avatarUrl === null ? null : requireUrl(avatarUrl, 'avatarUrl', 512) }),
    ...(joinPolicy == null ? {} : { joinPolicy }),
    ...(historyVisible == null ? {} : { historyVisible }),
  };
}

/** The events that say what is new. */
function newsOf(before: GroupFacts, next: GroupFacts): { contentType: ContentTypeName; content: JsonObject }[] {
  const isNew = (fact: keyof GroupFacts) => before[fact] !== next[fact];
  const rest = (['avatarUrl', 'joinPolicy', 'historyVisible'] as const).filter(isNew);
  return [
    ...(isNew('title') ? [{ contentType: 'NAME_UPDATE' as const, content: { title: next.title } }] : []),
    ...(isNew('notice') ? [{ contentType: 'NOTICE_UPDATE' as const, content: { notice: next.notice } }] : []),
    ...(rest.length > 0
      ? [
          {
            contentType: 'GROUP_INFO_UPDATE' as const,
            content: Object.fromEntries(rest.map((fact) => [fact, next[fact]])),
          },
        ]
      : []),
  ];
}

/** Only owner and admins may send, or all again. */
export async function muteAll(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly muted: boolean },
): Promise<ConvAnswer> {
  const id = requireConvId(input.conv);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('muteAll', viewer, scene.conv, scene.actor);
    const before = await scene.tx.groups.facts(id);
    if (before.allMuted === input.muted) return;
    await scene.tx.groups.setFacts(id, { ...before, allMuted: input.muted });
    await announceFact(deps, viewer, scene, conv, {
      contentType: input.muted ? 'GROUP_MUTED' : 'GROUP_UNMUTED',
      content: null,
    });
  });
}

/** Nobody may send, or all again: by the service alone. */
export async function banConv(
  deps: Deps,
  viewer: Viewer,
  input: { readonly conv: string; readonly banned: boolean },
): Promise<ConvAnswer> {
  requireService(viewer);
  const id = requireConvId(input.conv);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay('banConv', viewer, scene.conv, scene.actor);
    const before = await scene.tx.groups.facts(id);
    if (before.banned === input.banned) return;
    await scene.tx.groups.setFacts(id, { ...before, banned: input.banned });
    await announceFact(deps, viewer, scene, conv, { contentType: 'GROUP_BANNED', content: { banned: input.banned } });
  });
}

/** Ends every membership at one event, at once; the members' rows follow in batches (dissolving.ts). */
export async function dissolveConv(deps: Deps, viewer: Viewer, input: { readonly conv: string }): Promise<ConvAnswer> {
  const id = requireConvId(input.conv);
  return underLock(deps, viewer, id, [], async (scene) => {
    // has been dissolved already, by whoever asks: the same answer
    if (scene.conv?.dissolved === true && scene.actor?.role === 'OWNER') return;
    const conv = requireMay('dissolveConv', viewer, scene.conv, scene.actor);
    const event = { kind: 'MEMBERSHIP', contentType: 'GROUP_DISSOLVE', content: null } as const;
    await scene.tx.groups.raiseInfoVersion(id);
    await scene.tx.groups.dissolve(id, await announce(deps, viewer, scene, conv, { event }));
  });
}

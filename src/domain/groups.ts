// What is true of a whole group, and its end: events in its log and `infoVersion`, never rows per member (C4).
import type { JoinPolicy, Viewer } from '../model.js';
import type { GroupFacts } from '../store/groups.js';
import { requireMay, requireService, type Action } from './access.js';
import type { Deps } from './deps.js';
import { requireConvId, requireShort, requireText, requireUrl } from './input.js';
import { announce, announceFact, underLock, type Announcement, type ConvAnswer } from './scene.js';

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
  return changeFacts(deps, viewer, 'updateConv', input.conv, requireFacts(deps, input));
}

async function changeFacts(
  deps: Deps,
  viewer: Viewer,
  action: Action,
  asked: string,
  facts: Partial<GroupFacts>,
): Promise<ConvAnswer> {
  const id = requireConvId(asked);
  return underLock(deps, viewer, id, [], async (scene) => {
    const conv = requireMay(action, viewer, scene.conv, scene.actor);
    const before = await scene.tx.groups.facts(id);
    const next = { ...before, ...facts };
    const news = newsOf(before, next);
    if (news.length === 0) return;
    await scene.tx.groups.setFacts(id, next);
    for (const each of news) await announceFact(deps, viewer, scene, conv, each);
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
function newsOf(before: GroupFacts, next: GroupFacts): Omit<Announcement, 'kind'>[] {
  const isNew = (fact: keyof GroupFacts) => before[fact] !== next[fact];
  const rest = (['avatarUrl', 'joinPolicy', 'historyVisible'] as const).filter(isNew);
  const news: Omit<Announcement, 'kind'>[] = [];
  if (isNew('title')) news.push({ contentType: 'NAME_UPDATE', content: { title: next.title } });
  if (isNew('notice')) news.push({ contentType: 'NOTICE_UPDATE', content: { notice: next.notice } });
  if (rest.length > 0) {
    const content = Object.fromEntries(rest.map((fact) => [fact, next[fact]]));
    news.push({ contentType: 'GROUP_INFO_UPDATE', content });
  }
  if (isNew('allMuted')) news.push({ contentType: next.allMuted ? 'GROUP_MUTED' : 'GROUP_UNMUTED', content: null });
  if (isNew('banned')) news.push({ contentType: 'GROUP_BANNED', content: { banned: next.banned } });
  return news;
}

/** Only owner and admins may send, or all again. */
export const muteAll = (
  deps: Deps,
  viewer: Viewer,
  { conv, muted }: { readonly conv: string; readonly muted: boolean },
): Promise<ConvAnswer> => changeFacts(deps, viewer, 'muteAll', conv, { allMuted: muted });

/** Nobody may send, or all again: by the service alone. */
export async function banConv(
  deps: Deps,
  viewer: Viewer,
  { conv, banned }: { readonly conv: string; readonly banned: boolean },
): Promise<ConvAnswer> {
  requireService(viewer);
  return changeFacts(deps, viewer, 'banConv', conv, { banned });
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

// The badge's total and the answer to "why does it say 3?" (U5, U6).
import type { Badge, ConvId, Seq, Viewer } from '../model.js';
import { requirePerson } from './access.js';
import type { Deps } from './deps.js';
import { forbidden, notMember } from './errors.js';
import { requireConvId, requireFirst, requireUserId } from './input.js';

export const badge = (deps: Deps, viewer: Viewer): Promise<Badge> =>
  deps.store.unread.badge(requirePerson(viewer).user);

export interface AuditInput {
  readonly conv: string;
  readonly user?: string | null | undefined;
  readonly after?: Seq | null | undefined;
  readonly first?: number | null | undefined;
}
export interface AuditAnswer {
  readonly conv: ConvId;
  readonly unread: number;
  readonly seqs: readonly Seq[];
  readonly head: Seq;
  readonly read: Seq;
  readonly hasMore: boolean;
}

export async function unreadAudit(deps: Deps, viewer: Viewer, input: AuditInput): Promise<AuditAnswer> {
  const conv = requireConvId(input.conv);
  const first = requireFirst(input.first, 100, deps.limits.maxAuditPage);
  const found = await deps.store.unread.audit(whose(viewer, input.user), conv, input.after ?? 0, first);
  if (found === null) throw notMember();
  return { conv, ...found, seqs: found.seqs.slice(0, first), hasMore: found.seqs.length > first };
}

function whose(viewer: Viewer, user: string | null | undefined) {
  if (user == null) return requirePerson(viewer).user;
  if (viewer.kind !== 'service') throw forbidden('only the service key may ask for another user');
  return requireUserId(user);
}

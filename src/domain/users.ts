// The application's users, as the application's own server tells of them.
import type { User, Viewer } from '../model.js';
import { requireService } from './access.js';
import { commit } from './commit.js';
import type { Deps } from './deps.js';
import { requireShort, requireUrl, requireUserId } from './input.js';

export interface UserInput {
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly avatarUrl?: string | null | undefined;
}

/** Makes the user or changes what is given: undefined stays, null clears. Friends are told what they see of the user (K8). */
export async function upsertUser(deps: Deps, viewer: Viewer, input: UserInput): Promise<User> {
  requireService(viewer);
  const given = {
    id: requireUserId(input.id, 'id'),
    name: input.name == null ? input.name : requireShort(input.name, 'name', 64),
    avatarUrl: input.avatarUrl == null ? input.avatarUrl : requireUrl(input.avatarUrl, 'avatarUrl', 512),
  };
  return commit(deps, async (tx, tell) => {
    const friends = await tx.contacts.friendsOf(given.id);
    await tx.clock.lockUsers([given.id, ...friends]);
    const before = (await tx.users.byIds([given.id])).get(given.id);
    const user = await tx.users.upsert(given);
    if (before && (before.name !== user.name || before.avatarUrl !== user.avatarUrl)) {
      for (const [friend, change] of await tx.contacts.touchFriendsOf(user.id)) {
        const hint = { kind: 'change', conversationType: 'NONE', contentType: 'FRIEND_INFO_UPDATED' } as const;
        tell([friend], { ...hint, about: { type: 'contact', peer: user.id }, change, originDevice: null });
      }
    }
    return user;
  });
}

// The application's users, as the application's own server tells of them.
import type { User, Viewer } from '../model.js';
import { requireService } from './access.js';
import type { Deps } from './deps.js';
import { requireShort, requireUrl, requireUserId } from './input.js';

export interface UserInput {
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly avatarUrl?: string | null | undefined;
}

/** Makes the user or changes what is given: undefined stays, null clears. */
export async function upsertUser(deps: Deps, viewer: Viewer, input: UserInput): Promise<User> {
  requireService(viewer);
  return deps.store.users.upsert({
    id: requireUserId(input.id, 'id'),
    name: input.name == null ? input.name : requireShort(input.name, 'name', 64),
    avatarUrl: input.avatarUrl == null ? input.avatarUrl : requireUrl(input.avatarUrl, 'avatarUrl', 512),
  });
}

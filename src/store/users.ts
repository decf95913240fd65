// The application's own users.
import type { User, UserId } from '../model.js';
import type { Db } from './sql.js';

const shown = { id: true, name: true, avatarUrl: true } as const;
const toUser = (found: { id: string; name: string | null; avatarUrl: string | null }) => found as User;

export const users = (db: Db) => ({
  /** Makes the user or changes what is given; what is undefined stays. */
  async upsert(user: {
    id: UserId;
    name?: string | null | undefined;
    avatarUrl?: string | null | undefined;
  }): Promise<User> {
    const given = {
      ...(user.name === undefined ? {} : { name: user.name }),
      ...(user.avatarUrl === undefined ? {} : { avatarUrl: user.avatarUrl }),
    };
    const update = { id: user.id, ...given };
    return toUser(await db.user.upsert({ where: { id: user.id }, create: update, update, select: shown }));
  },

  async byIds(ids: readonly UserId[]): Promise<Map<UserId, User>> {
    const found = await db.user.findMany({ where: { id: { in: [...ids] } }, select: shown });
    return new Map(found.map((user) => [user.id as UserId, toUser(user)]));
  },
});

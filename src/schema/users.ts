// Users as others see them.
import { upsertUser } from '../domain/users.js';
import type { User, UserId } from '../model.js';
import { builder } from './builder.js';
import { viewerOf, type Context } from './context.js';

export const user = builder.objectRef<User>('User').implement({
  description: 'A user of the application. The id is the application’s own: text of 1 to 64 characters.',
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name', { nullable: true }),
    avatarUrl: t.exposeString('avatarUrl', { nullable: true }),
  }),
});

/** By the id of one who must be there. */
export const userOf = async ({ deps }: Context, id: UserId): Promise<User> =>
  (await deps.loads.user(id)) ?? { id, name: null, avatarUrl: null };

const upsertUserInput = builder.inputType('UpsertUserInput', {
  fields: (t) => ({
    id: t.id({ required: true, description: '1 to 64 characters' }),
    name: t.string({ description: '1 to 64 characters; absent: unchanged, null: cleared' }),
    avatarUrl: t.string({ description: 'http or https, at most 512 characters; absent: unchanged, null: cleared' }),
  }),
});

const userPayload = builder.objectRef<{ user: User }>('UserPayload').implement({
  fields: (t) => ({ user: t.expose('user', { type: user }) }),
});

builder.mutationField('upsertUser', (t) =>
  t.field({
    type: userPayload,
    nullable: true,
    description: 'Makes a user or changes what is given. Service key only.',
    args: { input: t.arg({ type: upsertUserInput, required: true }) },
    resolve: async (_, { input }, context) => ({ user: await upsertUser(context.deps, viewerOf(context), input) }),
  }),
);

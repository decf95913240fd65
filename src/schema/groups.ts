// What a group is and who may do what in it, beyond coming and going.
import { banConv, dissolveConv, muteAll, updateConv } from '../domain/groups.js';
import { pins, pinEvent, unpinEvent } from '../domain/pins.js';
import { requirePerson } from '../domain/access.js';
import { muteMember, setNickname, setRole, transferConv, unmuteMember } from '../domain/roles.js';
import { builder, statement } from './builder.js';
import { viewerOf } from './context.js';
import { conv, convPayload, joinPolicy, role } from './conversations.js';
import { event } from './messages.js';

builder.objectFields(conv, (t) => ({
  notice: t.exposeString('notice', { nullable: true, description: 'at most 2,048 characters' }),
  avatarUrl: t.exposeString('avatarUrl', { nullable: true }),
  allMuted: t.exposeBoolean('allMuted', { description: 'only owner and admins may send' }),
  banned: t.exposeBoolean('banned', { description: 'nobody may send: the service closed it' }),
  silencedUntil: t.expose('silencedUntil', {
    type: 'DateTime',
    nullable: true,
    description: 'the viewer may not send until then; the year 9999: without end. null, or past: may',
  }),
  nickname: t.exposeString('nickname', { nullable: true, description: 'the viewer’s own name here' }),
  pins: t.field({
    type: [event],
    description:
      'At most 5, newest pin first; without those that the viewer may not see. A recalled one has no content.',
    complexity: { field: statement, multiplier: 5 },
    resolve: (parent, _, context) =>
      pins(context.deps, requirePerson(viewerOf(context)).user, parent.id).then((found) => [...found]),
  }),
}));

const updateConvInput = builder.inputType('UpdateConvInput', {
  fields: (t) => ({
    conv: t.id({ required: true }),
    title: t.string({ description: '1 to 64 characters' }),
    notice: t.string({ description: '1 to 2,048 characters; null clears it' }),
    avatarUrl: t.string({ description: 'http or https, at most 512 characters; null clears it' }),
    joinPolicy: t.field({ type: joinPolicy }),
    historyVisible: t.boolean({ description: 'for those who join from now on' }),
  }),
});

const forbidden = 'Else FORBIDDEN, to strangers NOT_MEMBER.';

builder.mutationFields((t) => {
  const id = { conv: t.arg.id({ required: true }) };
  const member = { ...id, user: t.arg.id({ required: true }) };
  const seq = { ...id, seq: t.arg({ type: 'Seq', required: true }) };
  return {
    updateConv: t.field({
      type: convPayload,
      nullable: true,
      description: `What is absent stays. An event each for a new name (NAME_UPDATE), a new notice (NOTICE_UPDATE) and the rest (GROUP_INFO_UPDATE), none where nothing is new. Owner, admins, service key. ${forbidden}`,
      args: { input: t.arg({ type: updateConvInput, required: true }) },
      resolve: (_, { input }, context) => updateConv(context.deps, viewerOf(context), input),
    }),
    setRole: t.field({
      type: convPayload,
      nullable: true,
      description: `ADMIN or MEMBER; at most 3 admins. Becoming an admin ends a mute. Owner, service key. ${forbidden}`,
      args: { ...member, role: t.arg({ type: role, required: true }) },
      resolve: (_, args, context) => setRole(context.deps, viewerOf(context), args),
    }),
    transferConv: t.field({
      type: convPayload,
      nullable: true,
      description: `Makes a member the owner; the old one is an ordinary member from then on. Owner, service key. ${forbidden}`,
      args: member,
      resolve: (_, args, context) => transferConv(context.deps, viewerOf(context), args),
    }),
    dissolveConv: t.field({
      type: convPayload,
      nullable: true,
      description: `Ends every membership at one event, at once; what was seen stays. Owner, service key. ${forbidden}`,
      args: id,
      resolve: (_, args, context) => dissolveConv(context.deps, viewerOf(context), args),
    }),
    banConv: t.field({
      type: convPayload,
      nullable: true,
      description: 'Closes a group to messages (FORBIDDEN to all who send), or opens it again. Service key only.',
      args: { ...id, banned: t.arg.boolean({ required: true }) },
      resolve: (_, args, context) => banConv(context.deps, viewerOf(context), args),
    }),
    muteAll: t.field({
      type: convPayload,
      nullable: true,
      description: `Only owner and admins may send, the others are answered MUTED; or all again. Owner, admins, service key. ${forbidden}`,
      args: { ...id, muted: t.arg.boolean({ required: true }) },
      resolve: (_, args, context) => muteAll(context.deps, viewerOf(context), args),
    }),
    muteMember: t.field({
      type: convPayload,
      nullable: true,
      description: `An ordinary member’s sends are answered MUTED until then, also after leaving and coming back. Owner, admins, service key. ${forbidden}`,
      args: { ...member, until: t.arg({ type: 'DateTime', description: 'absent: without end' }) },
      resolve: (_, args, context) => muteMember(context.deps, viewerOf(context), args),
    }),
    unmuteMember: t.field({
      type: convPayload,
      nullable: true,
      description: `Owner, admins, service key. ${forbidden}`,
      args: member,
      resolve: (_, args, context) => unmuteMember(context.deps, viewerOf(context), args),
    }),
    setNickname: t.field({
      type: convPayload,
      nullable: true,
      description: 'The viewer’s own name in a group, 1 to 64 characters; absent: none.',
      args: { ...id, nickname: t.arg.string() },
      resolve: (_, args, context) => setNickname(context.deps, viewerOf(context), args),
    }),
    pinEvent: t.field({
      type: convPayload,
      nullable: true,
      description: `At most 5 messages; BAD_USER_INPUT for what is none, is recalled or not visible to the viewer. Owner, admins, service key. ${forbidden}`,
      args: seq,
      resolve: (_, args, context) => pinEvent(context.deps, viewerOf(context), args),
    }),
    unpinEvent: t.field({
      type: convPayload,
      nullable: true,
      description: `Owner, admins, service key. ${forbidden}`,
      args: seq,
      resolve: (_, args, context) => unpinEvent(context.deps, viewerOf(context), args),
    }),
  };
});

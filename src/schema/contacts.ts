// Contacts and contact requests, and the hint that one of them changed.
import {
  acceptContact,
  contactRequests,
  refuseContact,
  requestContact,
  withdrawContact,
} from '../domain/contact-requests.js';
import { blockContact, contacts, deleteContact, unblockContact, updateContact } from '../domain/contacts.js';
import type { ContactAnswer } from '../domain/ties.js';
import type { Contact, ContactRequest } from '../model.js';
import { builder, priced } from './builder.js';
import { connectionOf, toConnection } from './connections.js';
import { viewerOf } from './context.js';
import { user, userOf } from './users.js';

export const requestState = builder.enumType('RequestState', {
  values: {
    PENDING: {},
    ACCEPTED: {},
    REFUSED: { description: 'by the one who was asked' },
    WITHDRAWN: { description: 'by the one who asked' },
  },
});

export const contact = builder.objectRef<Contact>('Contact').implement({
  description:
    'How the viewer holds another user; each direction by itself. Nothing is removed: who is no contact any longer is not active.',
  fields: (t) => ({
    id: t.id({ description: 'the other user’s', resolve: ({ peer }) => peer }),
    user: t.field({
      type: user,
      resolve: ({ peer }, _, context) => userOf(context, peer),
    }),
    active: t.exposeBoolean('active', { description: 'false: deleted, or only blocked' }),
    remark: t.exposeString('remark', { nullable: true, description: 'the viewer’s own name for them' }),
    muted: t.exposeBoolean('muted'),
    pinned: t.exposeBoolean('pinned'),
    blocked: t.exposeBoolean('blocked', { description: 'the viewer has blocked them' }),
    since: t.expose('since', { type: 'DateTime', description: 'when they were last added' }),
  }),
});

export const contactRequest = builder.objectRef<ContactRequest>('ContactRequest').implement({
  description: 'One for each ordered pair: asking again opens it again.',
  fields: (t) => ({
    id: t.id({ description: 'names the pair', resolve: ({ from, to }) => JSON.stringify([from, to]) }),
    from: t.field({
      type: user,
      resolve: ({ from }, _, context) => userOf(context, from),
    }),
    to: t.field({ type: user, resolve: ({ to }, _, context) => userOf(context, to) }),
    state: t.expose('state', { type: requestState }),
    text: t.exposeString('text', { nullable: true }),
    requestedAt: t.expose('requestedAt', { type: 'DateTime' }),
    handledAt: t.expose('handledAt', { type: 'DateTime', nullable: true, description: 'null while it is PENDING' }),
  }),
});

const contactPayload = builder.objectRef<ContactAnswer>('ContactPayload').implement({
  fields: (t) => ({
    contact: t.field({
      type: contact,
      nullable: true,
      description: 'how the viewer holds the user now; null: never did',
      resolve: ({ user: me, peer }, _, { deps }) => deps.loads.contact({ user: me, peer }),
    }),
    request: t.field({
      type: contactRequest,
      nullable: true,
      description: 'the request that it was about; null when there was none',
      resolve: ({ request }, _, { deps }) => request && deps.loads.contactRequest(request),
    }),
  }),
});

const contactConnection = connectionOf<Contact>('Contact', contact, 'A page of contacts, by user id.');
const requestConnection = connectionOf<ContactRequest>(
  'ContactRequest',
  contactRequest,
  'A page of contact requests, by the other user’s id.',
);
const page = { first: '1 to 200, default 50' };

builder.queryFields((t) => ({
  contacts: t.field({
    type: contactConnection,
    description: 'The viewer’s contacts.',
    args: {
      blocked: t.arg.boolean({ description: 'those blocked instead, contacts or not' }),
      first: t.arg.int({ description: page.first }),
      after: t.arg.string(),
    },
    complexity: ({ first }) => priced(first, 50),
    resolve: async (_, args, context) =>
      toConnection(await contacts(context.deps, viewerOf(context), args), ({ peer }) => peer),
  }),
  contactRequests: t.field({
    type: requestConnection,
    description: 'The requests that the viewer was asked, or sent.',
    args: {
      sent: t.arg.boolean({ description: 'those that the viewer sent; default false' }),
      state: t.arg({ type: requestState, description: 'default all' }),
      first: t.arg.int({ description: page.first }),
      after: t.arg.string(),
    },
    complexity: ({ first }) => priced(first, 50),
    resolve: async (_, args, context) =>
      toConnection(await contactRequests(context.deps, viewerOf(context), args), ({ from, to }) =>
        args.sent === true ? to : from,
      ),
  }),
}));

const acts = {
  acceptContact: [
    acceptContact,
    'Both become contacts, and their direct conversation gets one FRIEND_ADD. CONFLICT with the `outcome` when somebody was first; BLOCKED when the asker has blocked the viewer since.',
  ],
  refuseContact: [refuseContact, 'CONFLICT with the `outcome` when it was handled or withdrawn already.'],
  withdrawContact: [
    withdrawContact,
    'Takes the viewer’s own request back. CONFLICT with the `outcome` when it was handled already.',
  ],
  deleteContact: [
    deleteContact,
    'One-sided: the other keeps the viewer and is not told. Repeating it changes nothing.',
  ],
  blockContact: [
    blockContact,
    'Stops the user’s direct messages and requests (BLOCKED), not groups and not what was sent before. Need not be a contact; the other is not told.',
  ],
  unblockContact: [unblockContact, 'Repeating it changes nothing.'],
} as const;

builder.mutationFields((t) => ({
  requestContact: t.field({
    type: contactPayload,
    nullable: true,
    description:
      'Asks a user to be a contact, from any state. When that user has asked already, both are contacts at once; when they still hold the viewer, the viewer adds them back silently. Unblocks the user. BLOCKED when the user has blocked the viewer.',
    args: {
      user: t.arg.id({ required: true }),
      text: t.arg.string({ description: '1 to 255 characters' }),
    },
    resolve: (_, args, context) => requestContact(context.deps, viewerOf(context), args),
  }),
  updateContact: t.field({
    type: contactPayload,
    nullable: true,
    description: 'The viewer’s own settings of a contact; what is absent stays. BAD_USER_INPUT for who is none.',
    args: {
      user: t.arg.id({ required: true }),
      remark: t.arg.string({ description: '1 to 16 characters; null clears it' }),
      muted: t.arg.boolean(),
      pinned: t.arg.boolean(),
    },
    resolve: (_, args, context) => updateContact(context.deps, viewerOf(context), args),
  }),
  ...Object.fromEntries(
    Object.entries(acts).map(([name, [act, description]]) => [
      name,
      t.field({
        type: contactPayload,
        nullable: true,
        description,
        args: { user: t.arg.id({ required: true }) },
        resolve: (_, args, context) => act(context.deps, viewerOf(context), args),
      }),
    ]),
  ),
}));

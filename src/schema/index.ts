// The whole schema: importing a file adds its types to the builder.
import { builder } from './builder.js';
import './scalars.js';
import './errors.js';
import './users.js';
import './devices.js';
import './viewer.js';
import './conversations.js';
import './memberships.js';
import './messages.js';
import './read-state.js';
import './delivery.js';
import './batches.js';
import './sync.js';
import './changes.js';
import './unread.js';
import './groups.js';
import './contacts.js';
import './join-requests.js';
import './signals.js';
import './hints.js';

export const schema = builder.toSchema();

const fieldsOf = (type: { getFields(): object } | null | undefined) => Object.keys(type?.getFields() ?? {});

/** What an operation can ask for at its root. */
export const rootFields = {
  query: fieldsOf(schema.getQueryType()),
  mutation: fieldsOf(schema.getMutationType()),
  subscription: fieldsOf(schema.getSubscriptionType()),
} as const;

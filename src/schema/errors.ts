// The closed list of error codes, where clients can read it.
import { errorCodes, type ErrorCode, type ItemError } from '../domain/errors.js';
import { builder } from './builder.js';

export const errorCode = builder.enumType('ErrorCode', {
  description: 'Every value of `extensions.code`. Each error also says `extensions.retryable`.',
  values: Object.fromEntries(
    Object.entries(errorCodes).map(([code, description]) => [code, { description }]),
  ) as Record<ErrorCode, { description: string }>,
});

export const itemError = builder.objectRef<ItemError>('ItemError').implement({
  description: 'Why one item of a request failed, while the others did not.',
  fields: (t) => ({
    code: t.expose('code', { type: errorCode }),
    message: t.exposeString('message'),
  }),
});

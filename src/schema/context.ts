// What the transport gives to every operation.
import type { Connection } from '../domain/connections.js';
import type { Deps } from '../domain/deps.js';
import type { Authentication } from '../domain/devices.js';
import { DomainError } from '../domain/errors.js';
import type { Viewer } from '../model.js';

export interface Context {
  readonly deps: Deps;
  readonly auth: Authentication;
  /** the socket or event stream that a subscription runs on; null for anything else */
  readonly connection: Connection | null;
}

/** @throws why there is no viewer; introspection and __typename never ask (I7) */
export function viewerOf({ auth }: Context): Viewer {
  if (auth.viewer) return auth.viewer;
  throw auth.refusal ?? new DomainError('UNAUTHENTICATED', 'this needs a credential');
}

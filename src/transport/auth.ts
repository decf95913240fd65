// From a request's headers or a socket's first message to who is asking (I1, I6). No cookie is ever read (P4).
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Deps } from '../domain/deps.js';
import { authenticateDevice, refused, type Authentication } from '../domain/devices.js';
import { DomainError, badInput, forbidden } from '../domain/errors.js';
import { requireUserId } from '../domain/input.js';
import type { Viewer } from '../model.js';

export interface Authenticator {
  ofRequest(headers: IncomingHttpHeaders): Promise<Authentication>;
  /** the payload of `connection_init` */
  ofSocket(payload: Readonly<Record<string, unknown>> | undefined): Promise<Authentication>;
}

const accepted = (viewer: Viewer): Authentication => ({ viewer, refusal: null, proven: null });
const unauthenticated = (message: string) => refused(new DomainError('UNAUTHENTICATED', message));
const sha256 = (value: string) => createHash('sha256').update(value).digest();

export function createAuthenticator(deps: Deps, serviceKeys: readonly string[]): Authenticator {
  const hashes = serviceKeys.map(sha256);
  // every key is compared, so that the time tells nothing
  const isServiceKey = (token: string) =>
    hashes.map((hash) => timingSafeEqual(hash, sha256(token))).some((equal) => equal);

  async function asService(headers: IncomingHttpHeaders): Promise<Authentication> {
    if (headers.origin !== undefined) return refused(forbidden('the service key is for servers: no Origin header'));
    const user = textOf(headers['x-tidemark-user']);
    if (user === undefined) return accepted({ kind: 'service' });
    try {
      const id = requireUserId(user, 'x-tidemark-user');
      if ((await deps.loads.user(id)) === null) return refused(badInput(`there is no user ${id}`));
      return accepted({ kind: 'user', user: id, via: 'SERVICE' });
    } catch (error) {
      if (error instanceof DomainError) return refused(error);
      throw error;
    }
  }

  return {
    async ofRequest(headers) {
      const token = fromBearer(headers.authorization);
      if (token && isServiceKey(token)) return asService(headers);
      if (headers['x-tidemark-user'] !== undefined) return refused(forbidden('x-tidemark-user needs the service key'));
      if (headers.authorization === undefined) return unauthenticated('this needs Authorization: Bearer <credential>');
      return token === null ? unauthenticated('Authorization is not of the form Bearer <credential>') : device(token);
    },
    async ofSocket(payload) {
      const given = payload?.['authorization'];
      if (typeof given !== 'string') return unauthenticated('connection_init carries no authorization');
      return device(fromBearer(given) ?? given);
    },
  };

  function device(token: string): Promise<Authentication> {
    return authenticateDevice(deps, token);
  }
}

function fromBearer(value: string | undefined): string | null {
  return /^Bearer +(\S+) *$/iu.exec(value ?? '')?.[1] ?? null;
}

/** Node reads header bytes as latin1; a user id outside of ASCII is sent as UTF-8. */
function textOf(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string') return value?.[0];
  const text = Buffer.from(value, 'latin1').toString('utf8');
  return text.includes('\ufffd') ? value : text;
}

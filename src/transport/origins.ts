// Which web pages may talk to us, over HTTP and WebSocket alike (P4), and what "this very machine" means.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Null where no page may. Not a browser: no Origin, always allowed. */
export type OriginRule = (origin: string | undefined) => boolean;

export function createOriginRule(allowed: readonly string[] | null, demo: boolean): OriginRule {
  if (allowed) {
    const origins = new Set(allowed);
    return (origin) => origin === undefined || origins.has(origin);
  }
  return (origin) => origin === undefined || (demo && isLoopbackOrigin(origin));
}

const isLoopbackName = (hostname: string) => ['localhost', '127.0.0.1', '[::1]'].includes(hostname);

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && isLoopbackName(new URL(origin).hostname);
}

/** The Host header names this machine: no other name has been pointed at it (DNS rebinding). */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/iu.test(host);
}

export function isLoopbackAddress(address: string | undefined): boolean {
  return address === '::1' || /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/u.test(address ?? '');
}

const allowedHeaders = 'authorization, content-type, accept, x-request-id';

/** Sets what the browser asks for; true when the request was only a question of the browser. */
export function answerCors(isAllowed: OriginRule, req: IncomingMessage, res: ServerResponse): boolean {
  const { origin } = req.headers;
  res.setHeader('vary', 'Origin');
  if (origin !== undefined && isAllowed(origin)) {
    res.setHeader('access-control-allow-origin', origin);
    res.setHeader('access-control-expose-headers', 'x-request-id, retry-after');
    if (req.method === 'OPTIONS') {
      res.setHeader('access-control-allow-methods', 'GET, POST');
      res.setHeader('access-control-allow-headers', allowedHeaders);
      res.setHeader('access-control-max-age', '600');
    }
  }
  if (req.method !== 'OPTIONS') return false;
  res.writeHead(204).end();
  return true;
}

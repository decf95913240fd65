// The numbers at /metrics, on a port of their own: whoever opens the API to the world does not open them with it.
import http, { type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Config } from '../config.js';
import { errorCodes } from '../domain/errors.js';
import { Metrics, processMetrics } from '../metrics.js';
import { rootFields } from '../schema/index.js';
import { listenOn, urlOf } from './listening.js';
import { operationNames } from './operations.js';

export interface MetricsServer extends AsyncDisposable {
  readonly url: string;
}

/** With every name that a label can have. */
export const createMetrics = (): Metrics =>
  new Metrics({
    operations: operationNames,
    subscriptions: rootFields.subscription,
    errorCodes: Object.keys(errorCodes),
  });

/**
 * Null when METRICS_PORT is not set.
 * @throws one plain line when the port is taken
 */
export async function serveMetrics(
  { metricsHost: host, metricsPort: port }: Config,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Logger },
): Promise<MetricsServer | null> {
  if (port === null) return null;
  processMetrics(); // watched from now on, not from the first question on
  const server = http.createServer({ requestTimeout: 10_000 }, ({ method, url }, res) => {
    if (method !== 'GET' || url?.split('?')[0] !== '/metrics') {
      res.writeHead(404).end();
      return;
    }
    answer(res, metrics).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be told');
      res.destroy();
    });
  });
  await listenOn(server, { host, port, variable: 'METRICS_PORT' });
  return {
    url: `${urlOf(server, host)}/metrics`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(res: ServerResponse, metrics: Metrics): Promise<void> {
  const text = await metrics.text();
  res.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' });
  res.end(text);
}

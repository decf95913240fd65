// More work than the database can take: whoever is not turned away before anything ran gets an error that says to repeat it.
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { GraphQLAnswer } from '../support/app.js';
import * as documents from '../support/documents.js';
import { holdRows } from '../support/held-lock.js';
import { readMetrics } from '../support/metrics.js';
import { tally } from '../support/outcome.js';
import { fresh, startWorld, type Actor } from '../support/world.js';

const sendOf = (conv: string) => ({
  query: documents.send,
  variables: { input: { conv, clientId: fresh(), contentType: 'TEXT', content: { text: 'x' } } },
});

it('[P6] [L1] 200 sends at once on two connections: each is stored or turned away unheard, and who comes back gets through', async () => {
  const gate = { atOnce: 10, maxWaiting: 40, maxWaitMs: 500 };
  const admission = { handshakes: gate, requests: gate, maxLatenessMs: Infinity };
  await using world = await startWorld({ config: { poolMax: 2, admission } });
  const ana = await world.device('ana');
  const { id: conv } = (await ana.createConv({ members: ['ben'] })).conv;
  const seen: unknown[] = [];
  const untilSent = async (): Promise<number> => {
    const body = sendOf(conv);
    for (;;) {
      const response = await world.app.post(ana.credential, body);
      const answer = (await response.json()) as GraphQLAnswer<{ send: { event: { seq: number } } }>;
      seen.push(answer.errors ? answer.errors[0]?.extensions?.['code'] : response.status);
      if (response.status === 200) return answer.data?.send.event.seq ?? 0;
      await pause(Math.random() * Number((answer as { retryAfterMs?: number }).retryAfterMs));
    }
  };
  const seqs = await Promise.all(Array.from({ length: 200 }, untilSent));
  expect(seqs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, n) => n + 3));
  const { 200: sent, 503: shed = 0, ...others } = tally(seen);
  expect([sent, others]).toEqual([200, {}]);
  expect(shed).toBeGreaterThan(0);
}, 120_000);

const unavailable = { code: 'INTERNAL_SERVER_ERROR', reason: 'UNAVAILABLE', retryable: true };

it('[P2] [L3] a send whose connection breaks says that nothing is known and when to repeat it, and repeated it is there once', async () => {
  await using world = await startWorld({ config: { metricsPort: 0 } });
  const ana = await world.device('ana');
  const { id: conv } = (await ana.createConv({ members: ['ben'] })).conv;
  const body = sendOf(conv);
  const ask = async () => (await (await world.app.post(ana.credential, body)).json()) as GraphQLAnswer;
  await using held = await holdRows(world.app.databaseUrl, 'SELECT 1 FROM conversations WHERE id = $1', [conv]);
  const sending = ask();
  const { pool } = world.app.deps.store;
  const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await pool.query(cut)).rowCount).toBeGreaterThan(0);
  const { errors } = await sending;
  expect(errors).toMatchObject([{ extensions: { ...unavailable, requestId: expect.any(String) as string } }]);
  const { retryAfterMs } = errors?.[0]?.extensions as { retryAfterMs: number };
  expect(retryAfterMs).toBeGreaterThan(0);
  expect(JSON.stringify(errors)).not.toMatch(/prisma|postgres|terminating|57P01/iu);
  await held.letGo();
  expect((await ask()).data).toMatchObject({ send: { duplicate: false } });
  expect((await ask()).data).toMatchObject({ send: { duplicate: true } });
  expect((await readMetrics(world.app)).get('tidemark_database_failures_total')).toBe(1);
});

it('[P6] [P2] a database that is away while the credential is looked up is a 503 with Retry-After: nothing ran', async () => {
  await using world = await startWorld();
  const { credential }: Actor = await world.device('ana');
  const { pool } = world.app.deps.store;
  const held = await Promise.all(Array.from({ length: 6 }, () => pool.connect()));
  const response = await world.app.post(credential, { query: '{ badge { unread } }' });
  for (const client of held) client.release();
  expect(response.status).toBe(503);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(((await response.json()) as GraphQLAnswer).errors).toMatchObject([{ extensions: unavailable }]);
});

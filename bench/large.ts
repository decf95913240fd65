// Sends a second in one very large group over Redis, told to the conversation once (PULL) against to each member (PUSH), and
// against PUSH in a group of ten. Nobody listens: what is measured is what a message costs its sender's node and Redis.
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { createApp } from '../src/app.js';
import { send } from '../src/domain/messages.js';
import type { UserId, UserViewer } from '../src/model.js';
import { testConfig } from '../test/support/app.js';
import { joinMany } from '../test/support/big-log.js';
import { startRedis } from '../test/support/redis.js';
import { convId, loadLogs } from './logs.js';
import { alternate, Findings, mediansOf, rateOf, type Bench } from './measure.js';

const lanes = 4;
const few = 10;
const [pull, push, small] = [convId(0), convId(1), convId(2)];

export const large: Bench = async ({ crowd, messages, rounds, turnMs }, server) => {
  await using postgres = await server.database('large', 1);
  await using redis = await startRedis();
  await loadLogs(postgres.pool, { convs: 3, messages, members: few, users: few });
  for (const conv of [pull, push]) await joinMany(postgres.pool, conv, crowd - few);
  await postgres.pool.query(`UPDATE conversations SET mode = 'PULL' WHERE id = $1`, [pull]);
  await postgres.pool.query('VACUUM (ANALYZE)');
  const config = testConfig(postgres.url, 'k'.repeat(43), { redisUrl: redis.url });
  await using app = await createApp(config, { log: pino({ level: 'silent' }) });
  const viewer: UserViewer = { kind: 'user', user: 'ana' as UserId, via: 'SERVICE' };
  const sendsTo = (conv: string) => () =>
    rateOf({ lanes, ms: turnMs }, () =>
      send(app.deps, viewer, { conv, clientId: randomUUID(), contentType: 'TEXT', content: { text: 'x' } }),
    );
  const contenders = { PULL: sendsTo(pull), PUSH: sendsTo(push), 'PUSH to ten': sendsTo(small) };
  const found = new Findings();
  found.compare('send', mediansOf(await alternate(rounds, contenders)), 'a second');
  return found;
};

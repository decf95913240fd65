// The lint rules of the house must be seen to fail: each import rule, broken by a snippet, says what to do instead.
import { ESLint } from 'eslint';
import { fileURLToPath } from 'node:url';
import tseslint from 'typescript-eslint';
import { expect, it } from 'vitest';

// Without types: the rules under test need none, and the files need not exist.
const eslint = new ESLint({
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  overrideConfig: [tseslint.configs.disableTypeChecked],
  ruleFilter: ({ ruleId }) => /no-restricted-|max-lines|no-console/.test(ruleId),
});

async function complaints(filePath: string, code: string): Promise<string> {
  const [result] = await eslint.lintText(code, { filePath });
  return (result?.messages ?? []).map(({ message }) => message).join('\n');
}

it.each([
  ['src/domain/a.ts', `import { Prisma } from '../generated/prisma/client.js';`, 'comes in through Deps'],
  ['src/domain/a.ts', `import pg from 'pg';`, 'add a named statement there'],
  ['src/schema/a.ts', `import { PrismaPg } from '@prisma/adapter-pg';`, 'add a named statement there'],
  ['src/domain/a.ts', `import { GraphQLError } from 'graphql';`, 'throw a DomainError'],
  ['src/store/a.ts', `import { createYoga } from 'graphql-yoga';`, 'GraphQL ends at src/schema'],
  ['src/model.ts', `import { GraphQLError } from 'graphql';`, 'GraphQL ends at src/schema'],
  ['src/domain/a.ts', `import SchemaBuilder from '@pothos/core';`, 'GraphQL ends at src/schema'],
  ['src/transport/a.ts', `import { Redis } from 'ioredis';`, 'behind the hint bus'],
  ['src/domain/a.ts', `import { RedisPubSub } from 'graphql-redis-subscriptions';`, 'behind the hint bus'],
  ['src/domain/a.ts', `import { WebSocket } from 'ws';`, 'Sockets belong to src/transport'],
  ['src/transport/a.ts', `import { Counter } from 'prom-client';`, 'Add a function to src/metrics.ts'],
  ['src/transport/a.ts', `import { createStore } from '../store/store.js';`, 'app.ts hands in the rest'],
  ['src/transport/a.ts', `import { builder } from '../schema/builder.js';`, 'app.ts hands in the rest'],
  ['src/transport/a.ts', `import { viewerOf } from '../schema/context.js';`, 'app.ts hands in the rest'],
  ['src/transport/a.ts', `import { readConfig } from '../config.js';`, 'app.ts hands in the rest'],
  ['src/schema/a.ts', `import type { Tx } from '../store/store.js';`, 'a resolver is one line'],
  ['src/schema/a.ts', `import { serve } from '../transport/server.js';`, 'a resolver is one line'],
  ['src/domain/a.ts', `import { createRedisBus } from '../hints/redis.js';`, 'comes in through Deps'],
  ['src/domain/a.ts', `import { readConfig } from '../config.js';`, 'comes in through Deps'],
  ['src/domain/a.ts', `import { serve } from '../transport/server.js';`, 'comes in through Deps'],
  ['src/store/a.ts', `import { commit } from '../domain/commit.js';`, 'decide in src/domain'],
  ['src/hints/a.ts', `import { commit } from '../domain/commit.js';`, 'knows nothing of who makes or reads them'],
  ['src/hints/a.ts', `import { createStore } from '../store/store.js';`, 'knows nothing of who makes or reads them'],
  ['src/main.ts', `import { createStore } from './store/store.js';`, 'put things together in src/app.ts'],
  ['src/demo.ts', `import { createStore } from './store/store.js';`, 'goes through the use cases'],
  ['src/config.ts', `import { createApp } from './app.js';`, 'reads the environment and nothing else'],
  ['src/model.ts', `import { readConfig } from './config.js';`, 'imports nothing but model'],
  ['src/domain/a.ts', `deps.bus.publish(users, hint);`, 'call tell(users, hint) inside commit'],
  ['src/domain/a.ts', `deps.bus.publishToConv(hint);`, 'call tell(users, hint) inside commit'],
  ['src/store/a.ts', `const url = process.env['DATABASE_URL'];`, 'src/config.ts is the only reader'],
  ['src/app.ts', `import { env } from 'node:process';`, 'src/config.ts is the only reader'],
  ['src/domain/a.ts', `console.log('here');`, 'Unexpected console statement'],
])('in %s: %s', async (file, code, message) => {
  expect(await complaints(file, code)).toContain(message);
});

it('a file of 201 lines and a function of 41 have too many', async () => {
  expect(await complaints('src/domain/a.ts', 'a();\n'.repeat(201))).toContain('too many lines');
  expect(await complaints('src/domain/a.ts', `function a() {\n${'a();\n'.repeat(39)}}`)).toContain('too many lines');
  expect(await complaints('src/domain/a.ts', `function a() {\n${'a();\n'.repeat(38)}}`)).toBe('');
});

it.each([
  ['src/app.ts', `import { createStore } from './store/store.js';\nimport { createRedisBus } from './hints/redis.js';`],
  ['src/commands.ts', `import { createStore } from './store/store.js';`],
  ['src/main.ts', `import { createApp } from './app.js';\nimport { readConfig } from './config.js';`],
  ['src/transport/a.ts', `import { schema } from '../schema/index.js';\nimport { createYoga } from 'graphql-yoga';`],
  ['src/transport/a.ts', `import type { Context } from '../schema/context.js';`],
  ['src/transport/a.ts', `import type { Config } from '../config.js';\nimport { health } from '../domain/health.js';`],
  ['src/schema/a.ts', `import { markRead } from '../domain/read-state.js';\nimport SchemaBuilder from '@pothos/core';`],
  ['src/domain/a.ts', `import { Mailbox } from '../hints/mailbox.js';\nimport type { Tx } from '../store/store.js';`],
  ['src/domain/a.ts', `import type { Limits } from '../config.js';\nimport { viaOf } from '../model.js';`],
  ['src/domain/commit.ts', `deps.bus.publish(users, hint);`],
  ['src/store/a.ts', `import pg from 'pg';\nimport { Prisma } from '../generated/prisma/client.js';`],
  ['src/hints/a.ts', `import { Redis } from 'ioredis';\nimport type { BusHint } from '../model.js';`],
  ['src/config.ts', `const url = process.env['DATABASE_URL'];`],
  ['test/a.test.ts', `import { createStore } from '../src/store/store.js';\nimport { Redis } from 'ioredis';`],
])('fine in %s: %s', async (file, code) => {
  expect(await complaints(file, code)).toBe('');
});

// The gate over docker-compose.yml and Dockerfile, without a container engine: the services that belong there, variables that
// src/config.ts knows with values it accepts, a health check for whatever keeps running, no key that nobody understands.
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { readConfig } from '../src/config.js';

const words = z.array(z.string());
const service = z.strictObject({
  image: z.string(),
  build: z.literal('.').optional(),
  command: words.optional(),
  environment: z.record(z.string(), z.string()).default({}),
  ports: words.default([]),
  volumes: words.optional(),
  depends_on: z
    .record(z.string(), z.strictObject({ condition: z.enum(['service_healthy', 'service_completed_successfully']) }))
    .default({}),
  healthcheck: z
    .union([
      z.strictObject({ disable: z.literal(true) }),
      z.strictObject({ test: words.min(2), interval: z.string(), timeout: z.string(), retries: z.int().min(1) }),
    ])
    .optional(),
  restart: z.enum(['unless-stopped', 'no']),
  stop_grace_period: z.string().optional(),
});
const compose = z.strictObject({
  name: z.literal('tidemark'),
  'x-node': z.unknown(),
  services: z.strictObject({ postgres: service, redis: service, migrate: service, node1: service, node2: service }),
  volumes: z.record(z.string(), z.null()),
});
type Service = z.infer<typeof service>;

/** `${NAME:-default}` becomes the default, `${NAME:?why}` something that fits. */
const filled = (text: string) =>
  text.replace(/\$\{[A-Z_]+:([-?])([^}]*)\}/g, (_, kind: string, rest: string) =>
    kind === '-' ? rest : 'x'.repeat(43),
  );

/** Names at the left of the schema in src/config.ts. */
function variablesOf(source: string): Set<string> {
  const schema = /const environment = z\.object\(\{([^]*?)\n\}\)/.exec(source)?.[1] ?? '';
  return new Set([...schema.matchAll(/^ {2}([A-Z][A-Z0-9_]*):/gm)].map(([, name = '']) => name));
}

function* problemsOfOurs(
  name: string,
  { environment, depends_on: needs }: Service,
  known: ReadonlySet<string>,
  fixed: Record<string, string>,
) {
  for (const [variable, value] of Object.entries(environment)) {
    if (!known.has(variable)) yield `${name}: src/config.ts knows no ${variable}`;
    if (/KEY|PASSWORD|SECRET|TOKEN/.test(variable) && !value.startsWith('${'))
      yield `${name}: ${variable} is in the file`;
  }
  const values = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, filled(value)]));
  try {
    const { databaseUrl, redisUrl } = readConfig({ ...fixed, ...values });
    if (new URL(databaseUrl ?? '').hostname !== 'postgres') yield `${name}: DATABASE_URL does not lead to postgres`;
    if (new URL(redisUrl ?? '').hostname !== 'redis') yield `${name}: REDIS_URL does not lead to redis`;
  } catch (error) {
    yield `${name}: ${(error as Error).message}`;
  }
  const wanted = name === 'migrate' ? ['postgres'] : ['migrate', 'redis'];
  for (const other of wanted) if (!(other in needs)) yield `${name}: does not wait for ${other}`;
}

/** Everything that is wrong, in words. */
export function findProblems(composeText: string, dockerfile: string, configSource: string): string[] {
  const { data, error } = compose.safeParse(parse(composeText, { merge: true }));
  if (error) return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  const known = variablesOf(configSource);
  const problems: string[] = known.size === 0 ? ['src/config.ts: its variables were not found'] : [];

  const fixed: Record<string, string> = {};
  for (const [, line = ''] of dockerfile.matchAll(/^ENV (.*)$/gm)) {
    for (const [, name = '', value = ''] of line.matchAll(/(\w+)=(\S+)/g)) fixed[name] = value;
  }
  for (const name of Object.keys(fixed))
    if (!known.has(name)) problems.push(`Dockerfile: src/config.ts knows no ${name}`);
  if (!/^USER (?!root)\w+$/m.test(dockerfile)) problems.push('Dockerfile: runs as root');
  const imageIsChecked = /^HEALTHCHECK [^]*\/healthz/m.test(dockerfile);

  const { migrate, node1, node2 } = data.services;
  for (const [name, found] of Object.entries({ migrate, node1, node2 }))
    problems.push(...problemsOfOurs(name, found, known, fixed));
  for (const [name, { restart, healthcheck, build }] of Object.entries(data.services)) {
    const isChecked = healthcheck ? 'test' in healthcheck : build === '.' && imageIsChecked;
    if (restart !== 'no' && !isChecked) problems.push(`${name}: has no health check`);
  }
  for (const [name, { ports }, port] of [
    ['node1', node1, '4000'],
    ['node2', node2, '4001'],
  ] as const) {
    const wanted = `127.0.0.1:${port}:${fixed['PORT'] ?? ''}`;
    if (ports.join() !== wanted) problems.push(`${name}: its port is not ${wanted}`);
  }
  return problems;
}

if (process.argv[1] === import.meta.filename) {
  const read = (name: string) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');
  const problems = findProblems(
    await read('docker-compose.yml'),
    await read('Dockerfile'),
    await read('src/config.ts'),
  );
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}

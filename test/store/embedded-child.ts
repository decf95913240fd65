// A process of its own that uses an embedded Postgres until its input ends: `embedded-child.ts <embedded.ts> <dataDir>`.
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

const [module = '', dataDir = ''] = process.argv.slice(2);
const { startEmbeddedPostgres } = (await import(
  pathToFileURL(module).href
)) as typeof import('../../src/store/embedded.js');

const server = await startEmbeddedPostgres({ dataDir, log: (line) => void process.stderr.write(`${line}\n`) });
const { url, pid, reused } = server;
process.stdout.write(`${JSON.stringify({ url, pid, reused, dataDir: server.dataDir })}\n`);
process.stdin.resume();
await once(process.stdin, 'end');
await server[Symbol.asyncDispose]();

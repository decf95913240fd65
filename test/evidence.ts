// `npm run evidence`: the specification's table as JSON, observed now on a service and a Postgres of its own. Exits 1 when a
// row is not as expected.
import { isDeepStrictEqual } from 'node:util';
import { migrate } from '../src/store/migrate.js';
import { startThrowawayPostgres } from './support/postgres.js';
import { startWorld } from './support/world.js';
import { observeTable } from './table/rows.js';

await using postgres = await startThrowawayPostgres();
await migrate(postgres.url);
await using world = await startWorld({ databaseUrl: postgres.url });
const rows = await observeTable(world);
console.log(JSON.stringify(rows, null, 2));
process.exitCode = rows.every(({ expected, observed }) => isDeepStrictEqual(expected, observed)) ? 0 : 1;

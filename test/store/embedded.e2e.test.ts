// The embedded Postgres as processes meet it: started together, killed, left behind. Passes as root and as anyone else.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../src/store/embedded.js';
import { isAlive, isRoot, newPlace, query, serverPid, startChild } from './embedded-places.js';

it('starts from nothing, reachable by password and on this machine only, and keeps its data', async () => {
  await using place = await newPlace();
  const log: string[] = [];
  const options = { dataDir: place.dataDir, log: (line: string) => log.push(line), settings: { fsync: 'off' } };
  {
    await using server = await startEmbeddedPostgres(options);
    expect(server).toMatchObject({ dataDir: place.dataDir, reused: false });
    expect(await query(server.url, 'SHOW listen_addresses')).toBe('127.0.0.1');
    expect(await query(server.url, 'SHOW unix_socket_directories')).toBe('');
    expect(await query(server.url, 'SHOW fsync')).toBe('off');
    expect(await query(server.url, 'SELECT current_database()')).toBe('tidemark');
    const guess = server.url.replace(/:[^:@]+@/, ':guess@');
    await expect(query(guess, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
    const { mode } = await stat(path.join(place.dataDir, 'cluster/password'));
    expect(mode & 0o777).toBe(0o600);
    await query(server.url, 'CREATE TABLE kept AS SELECT 7 AS n');
  }
  expect(await serverPid(place.dataDir)).toBeUndefined();
  await using server = await startEmbeddedPostgres(options);
  expect(await query(server.url, 'SELECT n FROM kept')).toBe(7);
  expect(log[0]).toBe(`creating the database cluster in ${place.dataDir}`);
  expect(log.slice(1).map((line) => line.replace(/\d{4,5}$/, 'PORT'))).toEqual(
    Array(2).fill('Postgres 18.4 is ready on 127.0.0.1:PORT'),
  );
});

it('survives kill -9 of the process that started it, is found again, and is then stopped', async () => {
  await using place = await newPlace();
  const child = await startChild(place.dataDir);
  await query(child.server.url, 'CREATE TABLE kept AS SELECT 7 AS n');
  await child.kill();
  expect(isAlive(child.server.pid)).toBe(true);
  {
    await using server = await startEmbeddedPostgres({ dataDir: place.dataDir });
    expect(server).toMatchObject({ pid: child.server.pid, url: child.server.url, reused: true });
    expect(await query(server.url, 'SELECT n FROM kept')).toBe(7);
  }
  expect(await serverPid(place.dataDir)).toBeUndefined();
});

it('runs until the last process that uses it has left, whoever started it', async () => {
  await using place = await newPlace();
  const starter = await startChild(place.dataDir);
  const other = await startChild(place.dataDir);
  expect(other.server).toEqual({ ...starter.server, reused: true });
  await starter.end();
  expect(await query(other.server.url, 'SELECT 1')).toBe(1);
  await other.end();
  expect(await serverPid(place.dataDir)).toBeUndefined();
});

it('is one server for processes that start together in an empty directory', async () => {
  await using place = await newPlace();
  const children = await Promise.all([1, 2, 3].map(() => startChild(place.dataDir)));
  expect(new Set(children.map((child) => child.server.url)).size).toBe(1);
  expect(children.filter((child) => !child.server.reused)).toHaveLength(1);
  expect((await readdir(place.dataDir)).sort()).toEqual(['cluster', 'postgres.log']);
  await Promise.all(children.map((child) => child.end()));
  expect(await serverPid(place.dataDir)).toBeUndefined();
});

it('starts again while the server that it found is stopping', async () => {
  await using place = await newPlace();
  for (let round = 0; round < 3; round++) {
    const leaving = await startEmbeddedPostgres({ dataDir: place.dataDir });
    const [, server] = await Promise.all([
      leaving[Symbol.asyncDispose](),
      startEmbeddedPostgres({ dataDir: place.dataDir }),
    ]);
    expect(await query(server.url, 'SELECT 1')).toBe(1);
    await server[Symbol.asyncDispose]();
  }
});

it('recovers after a crash, also when another program has got its process number', async () => {
  await using place = await newPlace();
  const crashed = await startEmbeddedPostgres({ dataDir: place.dataDir });
  await query(crashed.url, 'CREATE TABLE kept AS SELECT 7 AS n');
  process.kill(crashed.pid, 'SIGKILL');
  await crashed[Symbol.asyncDispose]();

  const lockFile = path.join(place.dataDir, 'cluster/data/postmaster.pid');
  const { uid, gid } = await stat(lockFile);
  const stranger = spawn('sleep', ['100'], { cwd: '/', ...(isRoot && { uid, gid }) });
  await once(stranger, 'spawn');
  const lines = (await readFile(lockFile, 'utf8')).split('\n');
  await writeFile(lockFile, [String(stranger.pid), ...lines.slice(1)].join('\n'));
  {
    await using server = await startEmbeddedPostgres({ dataDir: place.dataDir });
    expect(server.reused).toBe(false);
    expect(await query(server.url, 'SELECT n FROM kept')).toBe(7);
  }
  expect(stranger.exitCode).toBeNull();
  stranger.kill();
});

it('does not mistake the server of the original for its own after the directory was copied', async () => {
  await using place = await newPlace();
  await using original = await startEmbeddedPostgres({ dataDir: place.dataDir });
  await query(original.url, 'CHECKPOINT');
  const copy = path.join(place.dir, 'copy');
  const { uid, gid } = await stat(path.join(place.dataDir, 'cluster'));
  await cp(place.dataDir, copy, { recursive: true });
  if (isRoot) await once(spawn('chown', ['-R', `${String(uid)}:${String(gid)}`, path.join(copy, 'cluster')]), 'exit');
  await using server = await startEmbeddedPostgres({ dataDir: copy });
  expect(server.reused).toBe(false);
  expect(server.pid).not.toBe(original.pid);
});

it('says in one line which setting Postgres refused', async () => {
  await using place = await newPlace();
  const start = startEmbeddedPostgres({ dataDir: place.dataDir, settings: { max_connections: 'many' } });
  await expect(start).rejects.toThrow(/^Postgres did not start: invalid value for parameter "max_connections".*$/);
});

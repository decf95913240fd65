// The process as an operator meets it: the demo of a first start, signals, and one plain line for what cannot work.
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { clientOf, startApp } from '../support/app.js';
import { emptyDatabase, freshDatabase } from '../support/postgres.js';
import { startTidemark } from '../support/process.js';
import { newPlace, serverPid } from '../store/embedded-places.js';

const ready = /GraphiQL: (http:\S+)\/graphql/u;
const pageCredential = /Bearer (tm_[^"\\]+)/u;

const page = async (url: string, as: string) =>
  (await fetch(`${url}/graphql?as=${as}`, { headers: { accept: 'text/html' } })).text();

it('the first start makes a demo, later ones find it again, and Postgres stops last', async () => {
  await using place = await newPlace();
  const env = { DATA_DIR: place.dataDir };
  let credential: string;
  {
    await using first = startTidemark([], env);
    const url = (await first.until(ready))[1] ?? '';
    await first.until(/Ctrl-C/u);
    for (const device of ['ana-phone', 'ben-phone', 'ben-laptop', 'cho-phone']) {
      expect(first.stdout()).toContain(`${url}/graphql?as=${device}`);
    }
    credential = pageCredential.exec(await page(url, 'ben-laptop'))?.[1] ?? '';
    expect(first.stdout()).toContain(credential);
    const { data } = await clientOf(url).query(
      credential,
      '{ viewer { user { name } device { id } } badge { unread } convs { nodes { type title unread delivered } } }',
    );
    expect(data).toMatchObject({
      viewer: { user: { name: 'Ben' }, device: { id: 'ben-laptop' } },
      badge: { unread: 3 },
    });
    expect(data?.['convs']).toMatchObject({
      nodes: [
        { type: 'GROUP', title: 'Harbour', unread: 2, delivered: 0 },
        { type: 'DIRECT', title: null, unread: 1, delivered: 0 },
      ],
    });
    // a visitor tries this too; the page must not hold a stale credential then
    await clientOf(url).query(credential, 'mutation { reinstall(installId: "tried") { credential } }');
    expect(pageCredential.exec(await page(url, 'ben-laptop'))?.[1]).toBe(credential.replace(/0$/u, '1'));
    expect(await first.kill('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  }
  expect(await serverPid(place.dataDir)).toBeUndefined();
  const { mode } = await stat(path.join(place.dataDir, 'demo-credentials.json'));
  expect(mode & 0o777).toBe(0o600);

  await using later = startTidemark(['serve'], env);
  const url = (await later.until(ready))[1] ?? '';
  const kept = JSON.parse(await readFile(path.join(place.dataDir, 'demo-credentials.json'), 'utf8')) as Record<
    string,
    string
  >;
  const { data } = await clientOf(url).query(kept['ana-phone'] ?? '', '{ convs { nodes { head } } }');
  expect(data).toEqual({ convs: { nodes: [{ head: 7 }, { head: 3 }] } });
  expect(await later.kill('SIGINT')).toMatchObject({ code: 0 });
});

it('[H6] a second process on the same data refuses to start', async () => {
  await using place = await newPlace();
  await using first = startTidemark([], { DATA_DIR: place.dataDir });
  await first.until(ready);
  const second = await startTidemark([], { DATA_DIR: place.dataDir }).ended;
  expect(second).toMatchObject({ code: 1 });
  expect(second.stderr).toBe('another Tidemark runs on this database; two nodes need REDIS_URL\n');
});

it('with HOST open to other machines the page holds no credential and the output says so', async () => {
  await using place = await newPlace();
  await using open = startTidemark([], { DATA_DIR: place.dataDir, HOST: '0.0.0.0' });
  const url = (await open.until(ready))[1] ?? '';
  await open.until(/Ctrl-C/u);
  expect(open.stdout()).toContain('HOST is open to other machines');
  expect(open.stdout()).not.toContain('?as=');
  expect(await page(url, 'ben-laptop')).not.toContain('tm_');
});

it('with a database of its own: migrate, device, serve; never a demo', async () => {
  await using database = await emptyDatabase();
  const env = { DATABASE_URL: database.url };
  const refused = await startTidemark([], env).ended;
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^the database lacks .+: run `tidemark migrate`\n$/u);

  expect((await startTidemark(['migrate'], env).ended).stdout).toMatch(/the database is up to date\n$/u);
  const made = await startTidemark(['device', '--user', 'ana', '--device', 'ana-phone'], env).ended;
  expect(made).toMatchObject({ code: 0, stderr: '' });
  const credential = made.stdout.trim();

  await using server = startTidemark([], env);
  const url = (await server.until(/"url":"([^"]+)"/u))[1] ?? '';
  const { data } = await clientOf(url).query(credential, '{ viewer { id device { id } } convs { nodes { id } } }');
  expect(data).toEqual({ viewer: { id: 'ana', device: { id: 'ana-phone' } }, convs: { nodes: [] } });
  expect(await page(url, 'ana-phone')).not.toContain('tm_');
  expect(await server.kill()).toMatchObject({ code: 0 });
});

it('seed --demo prints credentials that work', async () => {
  await using database = await freshDatabase();
  const seeded = await startTidemark(['seed', '--demo'], { DATABASE_URL: database.url }).ended;
  const credential = /ben-laptop\s+(tm_\S+)/u.exec(seeded.stdout)?.[1] ?? '';
  await using app = await startApp({ databaseUrl: database.url });
  expect((await app.query(credential, '{ badge { unread } }')).data).toEqual({ badge: { unread: 3 } });
});

it('[L8] `restored` gives every log a new epoch', async () => {
  await using database = await freshDatabase();
  const env = { DATABASE_URL: database.url };
  const seeded = await startTidemark(['seed', '--demo'], env).ended;
  const credential = /ana-phone\s+(tm_\S+)/u.exec(seeded.stdout)?.[1] ?? '';
  const epochs = async () => {
    await using app = await startApp({ databaseUrl: database.url });
    const { data } = await app.query<{ convs: { nodes: { epoch: number }[] } }>(
      credential,
      '{ convs { nodes { epoch } } }',
    );
    return data?.convs.nodes.map(({ epoch }) => epoch) ?? [];
  };
  const before = await epochs();
  expect((await startTidemark(['restored'], env).ended).stdout).toContain('generation');
  expect(await epochs()).toEqual(before.map((epoch) => epoch + 1));
});

it.each([
  ['every bad variable', { PORT: 'x', REDIS_URL: 'nowhere' }, /^PORT: .+\nREDIS_URL: .+\n$/u],
  [
    'a database that does not answer',
    { DATABASE_URL: 'postgresql://a:secret@127.0.0.1:1/b' },
    /^cannot reach Postgres on 127\.0\.0\.1:1: .+\n$/u,
  ],
])('names %s and exits with 1', async (_, env, expected) => {
  const { code, stderr } = await startTidemark([], env).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(expected);
  expect(stderr).not.toContain('secret');
});

it('TIDEMARK_FAILPOINT kills the process at that point', async () => {
  await using database = await freshDatabase();
  const env = { DATABASE_URL: database.url };
  const seeded = await startTidemark(['seed', '--demo'], env).ended;
  const credential = /ana-phone\s+(tm_\S+)/u.exec(seeded.stdout)?.[1] ?? '';
  await using server = startTidemark([], { ...env, TIDEMARK_FAILPOINT: 'after commit' });
  const client = clientOf((await server.until(/"url":"([^"]+)"/u))[1] ?? '');
  const revoking = 'mutation { revokeDevice(deviceId: "ana-phone") { device { id } } }';
  await expect(client.query(credential, revoking)).rejects.toThrow();
  expect(await server.ended).toMatchObject({ signal: 'SIGKILL' });
});

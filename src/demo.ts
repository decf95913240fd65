// The demo of a first start: three people, four devices, two conversations, made through the use cases. Their credentials
// are random and lie in a file beside the database, which keeps only hashes.
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createConv } from './domain/conversations.js';
import { ack } from './domain/delivery.js';
import type { Deps } from './domain/deps.js';
import { authenticateDevice, registerDevice } from './domain/devices.js';
import { send } from './domain/messages.js';
import { markRead } from './domain/read-state.js';
import { upsertUser } from './domain/users.js';
import type { ConvId, DeviceId, DeviceViewer } from './model.js';

const people = { ana: 'Ana', ben: 'Ben', cho: 'Cho' };
const devices = { 'ana-phone': 'ana', 'ben-phone': 'ben', 'ben-laptop': 'ben', 'cho-phone': 'cho' } as const;
type DeviceName = keyof typeof devices;
const deviceNames = Object.keys(devices) as DeviceName[];
/** the one with something unread */
const defaultDevice: DeviceName = 'ben-laptop';
const service = { kind: 'service' } as const;

type Credentials = Readonly<Record<DeviceName, string>>;

export interface Demo {
  readonly devices: readonly string[];
  readonly defaultDevice: string;
  credentialOf(device: string): Promise<string>;
  /** what a person needs to begin */
  describe(url: string, isLoopback: boolean): string[];
}

/** Seeds once; at later starts only what has been lost is made anew. */
export async function prepareDemo(deps: Deps, dir: string): Promise<Demo> {
  const file = path.join(dir, 'demo-credentials.json');
  const kept = await readCredentials(file);
  const credentials = kept && (await areValid(deps, kept)) ? kept : await seedDemo(deps);
  if (credentials !== kept) await writeCredentials(file, credentials);
  return {
    devices: deviceNames,
    defaultDevice,
    credentialOf: (device) => current(deps, credentials[device as DeviceName]),
    describe: (url, isLoopback) => describe(credentials, url, isLoopback),
  };
}

async function readCredentials(file: string): Promise<Credentials | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Credentials;
  } catch {
    return null;
  }
}

async function writeCredentials(file: string, credentials: Credentials): Promise<void> {
  const next = `${file}.${String(process.pid)}`;
  await writeFile(next, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
  await rename(next, file);
}

async function areValid(deps: Deps, credentials: Credentials): Promise<boolean> {
  const given = deviceNames.map((name) => credentials[name]);
  if (given.some((credential) => typeof credential !== 'string')) return false;
  const found = await Promise.all(given.map((credential) => authenticateDevice(deps, credential)));
  return found.every(({ viewer }) => viewer !== null);
}

/** After a visitor has tried `reinstall` the secret is the same and the epoch is not. */
async function current(deps: Deps, credential: string): Promise<string> {
  const [, id = '', rest = ''] = /^tm_([^.]+)\.([^.]+)\./u.exec(credential) ?? [];
  const device = await deps.store.devices.byId(id as DeviceId);
  return `tm_${id}.${rest}.${String(device?.installEpoch ?? 1)}`;
}

/** Safe to repeat: users are upserts, conversations and messages have clientIds; devices get new credentials. */
export async function seedDemo(deps: Deps): Promise<Credentials> {
  for (const [id, name] of Object.entries(people)) await upsertUser(deps, service, { id, name });
  const made: [string, string][] = [];
  for (const [deviceId, user] of Object.entries(devices)) {
    const { credential } = await registerDevice(deps, service, { user, deviceId, name: deviceId });
    made.push([deviceId, credential ?? '']);
  }
  const credentials = Object.fromEntries(made) as Credentials;
  const viewers = Object.fromEntries(
    await Promise.all(made.map(async ([name, credential]) => [name, await viewerOf(deps, credential)] as const)),
  ) as Record<DeviceName, DeviceViewer>;
  await talk(deps, viewers);
  return credentials;
}

async function viewerOf(deps: Deps, credential: string): Promise<DeviceViewer> {
  const { viewer } = await authenticateDevice(deps, credential);
  if (viewer?.kind !== 'device') throw new Error('a new credential does not hold');
  return viewer;
}

async function talk(deps: Deps, as: Readonly<Record<DeviceName, DeviceViewer>>): Promise<void> {
  const { 'ana-phone': ana, 'ben-phone': ben, 'cho-phone': cho } = as;
  const group = { clientId: 'demo-harbour', type: 'GROUP', title: 'Harbour', members: ['ben', 'cho'] } as const;
  const harbour = await createConv(deps, ana, group);
  const direct = await createConv(deps, ana, { clientId: 'demo-direct', type: 'DIRECT', members: ['ben'] });
  const lines: readonly (readonly [DeviceViewer, ConvId, string])[] = [
    [ana, harbour.conv, 'The boat is back in the water.'],
    [cho, harbour.conv, 'Does the pump work?'],
    [ben, harbour.conv, 'It does. High tide is at six.'],
    [ana, direct.conv, 'Will you bring the charts?'],
    [ben, direct.conv, 'Both of them.'],
    [cho, harbour.conv, 'Then I come at five.'],
    [ana, direct.conv, 'And the lamp, please.'],
    [ana, harbour.conv, 'See you at the pier.'],
  ];
  for (const [index, [viewer, conv, text]] of lines.entries()) {
    await send(deps, viewer, { conv, clientId: `demo-${String(index)}`, contentType: 'TEXT', content: { text } });
  }
  // ben's phone holds everything and ben has read up to his own last line; the laptop holds nothing yet
  await ack(deps, ben, { conv: harbour.conv, seq: 7 });
  await ack(deps, ben, { conv: direct.conv, seq: 3 });
  await markRead(deps, ben, { conv: harbour.conv, seq: 5 });
  await markRead(deps, ben, { conv: direct.conv, seq: 2 });
}

export function describe(credentials: Credentials, url: string, isLoopback: boolean): string[] {
  const entries = deviceNames.map((name) => [name, credentials[name]] as const);
  const links = isLoopback
    ? deviceNames.map((name) => `  ${name.padEnd(12)} ${url}/graphql?as=${name}`)
    : ['  HOST is open to other machines: GraphiQL holds no credential, paste one into its Headers tab.'];
  return [
    '',
    `Tidemark runs. GraphiQL: ${url}/graphql`,
    '',
    'The demo, one window for each device:',
    ...links,
    '',
    'Credentials (Authorization: Bearer …):',
    ...entries.map(([name, credential]) => `  ${name.padEnd(12)} ${credential}`),
    '',
    'Ctrl-C stops it; the data stay. For your own database set DATABASE_URL (see .env.example).',
  ];
}

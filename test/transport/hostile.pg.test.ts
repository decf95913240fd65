// What a stranger or a hostile device may try: none of it costs the others anything.
import net from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startWorld, type Actor, type World } from '../support/world.js';

let world: World;
let ben: Actor;
beforeAll(async () => {
  world = await startWorld();
  ben = await world.device('ben');
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

test.each([
  ['another path', '/nope', ''],
  ['a foreign origin', '/graphql', 'Origin: https://evil.example\r\n'],
])('[P4] an upgrade to %s that is reset at once does not end the process', async (_, path, header) => {
  for (let attempt = 0; attempt < 40; attempt++) {
    await new Promise<void>((resolve) => {
      const socket = net.connect(world.app.port, '127.0.0.1', () => {
        const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${header}${key}\r\n`,
        );
        setImmediate(() => socket.resetAndDestroy());
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        resolve();
      });
    });
  }
  expect((await ben.badge()).unread).toBe(0);
});

const bomb = (levels: number) => {
  const fragments = Array.from({ length: levels }, (_, n) => {
    const inner = n + 1 < levels ? `...F${String(n + 1)} ...F${String(n + 1)}` : 'seq';
    return `fragment F${String(n)} on MessageHint { ${inner} }`;
  });
  return `subscription { message { ...F0 } } ${fragments.join(' ')}`;
};

test.each([
  ['fragments that spread one another', bomb(40)],
  [
    'more fields than a query may have',
    `subscription { message { ${Array.from({ length: 500 }, (_, n) => `a${String(n)}: seq`).join(' ')} } }`,
  ],
  [
    'more than a badge may cost',
    `subscription { badgeChanged {  ${Array.from({ length: 500 }, (_, n) => `a${String(n)}: unread`).join(' ')} } }`,
  ],
])('[P1] a subscription with %s is refused before anything listens', async (_, document) => {
  const before = world.app.deps.bus.stats();
  const live = await ben.app.subscribe(ben.credential, document);
  expect((await live.next()).errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', retryable: false });
  await live.socket.close();
  await expect.poll(() => world.app.deps.bus.stats()).toEqual(before);
});

// The network between a client and a server, for tests that break it: it passes everything, swallows it without a word,
// holds it back, delays it, or refuses new connections.
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * `drop`: what is connected hears nothing more from the other side, for ever, and is not closed either (half-open); so it
 * goes with connections made meanwhile. `hold`: nothing gets through, and all of it once it passes again.
 */
export type Network = 'pass' | 'drop' | 'hold' | 'refuse';

export interface Proxy extends AsyncDisposable {
  /** The same address by way of this network. */
  through(url: string): string;
  set(network: Network): void;
  /** How many milliseconds the next piece of data takes; the order within one connection and direction is kept. */
  delay: () => number;
  /** Connections that have come so far. */
  readonly accepted: number;
}

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  /** forgotten by the network: what either side says goes nowhere */
  lost: boolean;
}

/** @param target where it leads: asked for at every new connection, null refuses it */
export async function startProxy(target: () => string | null): Promise<Proxy> {
  const pairs = new Set<Pair>();
  let network: Network = 'pass';
  let accepted = 0;
  // Half-open: a network that is gone does not pass on a goodbye either.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on('error', () => near.destroy());
    const url = network === 'refuse' ? null : target();
    if (url === null) {
      near.resetAndDestroy();
      return;
    }
    accepted++;
    const { hostname, port } = new URL(url);
    const far = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const pair = { near, far, lost: network === 'drop' };
    pairs.add(pair);
    carry(pair, near, far, proxy);
    carry(pair, far, near, proxy);
    if (network === 'hold') hold(pair);
    for (const socket of [near, far]) {
      socket.on('close', () => {
        if (near.destroyed && far.destroyed) pairs.delete(pair);
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const proxy: Proxy = {
    through: (url) => {
      const changed = new URL(url);
      changed.host = `127.0.0.1:${String(port)}`;
      return changed.href.replace(/(?<=:\d+)\/$/u, '');
    },
    set: (next) => {
      network = next;
      for (const pair of pairs) {
        pair.lost ||= next === 'drop';
        if (next === 'hold') hold(pair);
        else for (const socket of [pair.near, pair.far]) socket.resume();
      }
    },
    delay: () => 0,
    get accepted() {
      return accepted;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { near, far } of pairs) for (const socket of [near, far]) socket.destroy();
      await closed;
    },
  };
  return proxy;
}

const hold = ({ near, far }: Pair) => {
  for (const socket of [near, far]) socket.pause();
};

function carry(pair: Pair, from: Socket, to: Socket, proxy: Pick<Proxy, 'delay'>): void {
  const waiting: { readonly due: number; readonly act: () => void }[] = [];
  // One timer for all: of two, the later one may ring first.
  const deliver = (): void => {
    while (waiting[0] && waiting[0].due <= performance.now()) waiting.shift()?.act();
    if (waiting[0]) setTimeout(deliver, waiting[0].due - performance.now());
  };
  const later = (act: () => void): void => {
    const ms = proxy.delay();
    waiting.push({ due: Math.max(waiting.at(-1)?.due ?? 0, performance.now() + ms), act: () => !pair.lost && act() });
    if (waiting.length === 1) deliver();
  };
  from.on('data', (chunk) => {
    later(() => to.write(chunk));
  });
  from.on('end', () => {
    later(() => to.end());
  });
  from.on('error', () => from.destroy());
  from.on('close', () => {
    later(() => to.destroy());
  });
}

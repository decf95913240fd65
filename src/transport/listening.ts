// Listening on a port: what went wrong as one plain line that names the variable to change, and the address that came of it.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Place {
  readonly host: string;
  readonly port: number;
  /** the environment variable that sets the port */
  readonly variable: string;
}

/** @throws one plain line when the port is taken */
export async function listenOn(server: Server, { host, port, variable }: Place): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new Error(whyNot(error as NodeJS.ErrnoException, { host, port, variable }), { cause: error });
  }
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port;

export function urlOf(server: Server, host: string): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${String(portOf(server))}`;
}

function whyNot({ code, message }: NodeJS.ErrnoException, { host, port, variable }: Place): string {
  const address = `${host}:${String(port)}`;
  if (code === 'EADDRINUSE') return `${address} is taken by another program: set ${variable}`;
  if (code === 'EACCES') return `${address} needs more rights: set ${variable} to one above 1024`;
  return `cannot listen on ${address}: ${message}`;
}

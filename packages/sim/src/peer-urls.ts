/** The peer URLs of machines. The URL shows which machine it is, and which of its addresses. */

const FIRST_PORT = 12_380;
/** Ports of each machine: it may move from one to the next. */
const PORTS = 10;

/** The peer URL of the machine with this number. @param port which of its ports */
export function urlOf(number: number, port = 0): string {
  return `http://127.0.0.1:${FIRST_PORT + PORTS * number + port}`;
}

function portOf(url: string): number {
  return Number(url.slice(url.lastIndexOf(":") + 1)) - FIRST_PORT;
}

/** The name of the machine at a peer URL. */
export function nameAt(url: string): string {
  return `m${Math.floor(portOf(url) / PORTS)}`;
}

/** The next address of a machine. */
export function nextUrl(url: string): string {
  const port = portOf(url);
  return urlOf(Math.floor(port / PORTS), ((port % PORTS) + 1) % PORTS);
}

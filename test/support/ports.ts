/**
 * Ports for members under test. Test files run beside each other, each in a process of its own, so
 * ports are given out in blocks: a block belongs to the process that listens on its first port,
 * which ends with the process whatever becomes of that. No other process gets a port between our
 * look and a member's start, or while a member is away.
 */
import { createServer } from "node:net";
import { isPortFree } from "../../scripts/cluster/processes.ts";

/**
 * Below 32768, where Linux starts to take ports for outgoing connections: a port that is free now
 * cannot be taken by another connection before the member listens on it.
 */
const LOWEST_PORT = 12_000;
const BLOCK_PORTS = 50;
const BLOCKS = 400;

/** Ports of blocks of ours that were not given yet. */
const left: number[] = [];
/**
 * Where the search for a block goes on; processes that start together begin at different places.
 */
let nextBlock = (process.pid * 7) % BLOCKS;

/**
 * `count` ports of 127.0.0.1 on which no process listens; none is returned twice, by this process
 * or by another one that lives.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = left.shift();
    if (port === undefined) await takeBlock();
    else if (await isPortFree(port)) ports.push(port);
  }
  return ports;
}

async function takeBlock(): Promise<void> {
  for (let tries = 0; tries < BLOCKS; tries++) {
    const first = LOWEST_PORT + nextBlock * BLOCK_PORTS;
    nextBlock = (nextBlock + 1) % BLOCKS;
    if (!(await listensOn(first))) continue;
    left.push(...Array.from({ length: BLOCK_PORTS - 1 }, (_, i) => first + 1 + i));
    return;
  }
  throw new Error(
    `no ports are left from ${LOWEST_PORT} to ${LOWEST_PORT + BLOCKS * BLOCK_PORTS - 1}`,
  );
}

/** Listens on a port until this process ends; false if another process does. */
function listensOn(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(port, "127.0.0.1", () => resolve(true));
    server.unref();
  });
}

/** Ports for members under test. */
import { isPortFree } from "../../scripts/cluster/processes.ts";

/**
 * Below 32768, where Linux starts to take ports for outgoing connections: a port that is free now cannot be taken by somebody's
 * connection before the member listens on it.
 */
const lowestPort = 12_000;
const highestPort = 32_000;

const given = new Set<number>();

/**
 * `count` ports of 127.0.0.1 on which nobody listens, none given twice by this process. Another test process may still pick the same
 * one; whoever starts a member must try again with others when it finds its port in use.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort));
    if (given.has(port)) continue;
    given.add(port);
    if (await isPortFree(port)) ports.push(port);
  }
  return ports;
}

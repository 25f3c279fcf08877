/**
 * What reading the configuration needs of the machine: files' texts, the machine's own address, and
 * the resolver.
 */
import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";

/** A file's text; throws with the system's reason alone ("no such file or directory"). */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // Node writes "ENOENT: no such file or directory, open 'x'"; the caller names the path.
    throw new Error(
      /^[A-Z]+: ([^,]+)/.exec((error as Error).message)?.[1] ?? (error as Error).message,
    );
  }
}

/** The interface of the default route from the text of /proc/net/route, or undefined. */
export function defaultRouteInterface(routes: string): string | undefined {
  for (const line of routes.split("\n").slice(1)) {
    const [name, destination, , , , , , mask] = line.trim().split(/\s+/);
    if (destination === "00000000" && mask === "00000000") return name;
  }
  return undefined;
}

/**
 * The machine's own IPv4 address towards others: that of the default route's interface, else of the
 * first that is not a loopback.
 */
export function defaultHost(): string | undefined {
  let preferred: string | undefined;
  try {
    preferred = defaultRouteInterface(readFileSync("/proc/net/route", "utf8"));
  } catch {
    // Not Linux: the first interface has to do.
  }
  const byName = Object.entries(networkInterfaces()).sort(
    ([a], [b]) => Number(b === preferred) - Number(a === preferred),
  );
  for (const [, addresses] of byName) {
    const found = addresses?.find((address) => address.family === "IPv4" && !address.internal);
    if (found !== undefined) return found.address;
  }
  return undefined;
}

/** A host's first address, IPv4 before IPv6. Rejects if there is none. */
export async function resolveHost(host: string): Promise<string> {
  return (await lookup(host, { order: "ipv4first" })).address;
}

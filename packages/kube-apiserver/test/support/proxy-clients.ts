/** Certificates of proxies in front of an API server, and of clients, in files. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Certificate, createAuthority } from "../../../../scripts/certs.ts";

export interface ProxyClients {
  readonly proxyCaFile: string;
  readonly clientCaFile: string;
  /** By their names: "proxy" and "stranger" of the proxies' authority, "client" of the clients'. */
  readonly certificates: Readonly<Record<"proxy" | "stranger" | "client" | "unknown", Certificate>>;
}

/** @param dir for the authorities' files */
export async function proxyClients(dir: string): Promise<ProxyClients> {
  const [proxies, clients, others] = await Promise.all(
    ["proxies", "clients", "others"].map((name) => createAuthority(name)),
  );
  const of = (authority: typeof proxies, commonName: string) =>
    authority.issue({ commonName, hosts: [], usage: "client" });
  const files = {
    proxyCaFile: join(dir, "proxy-ca.pem"),
    clientCaFile: join(dir, "client-ca.pem"),
  };
  writeFileSync(files.proxyCaFile, proxies.caPem);
  writeFileSync(files.clientCaFile, clients.caPem);
  const certificates = {
    proxy: await of(proxies, "proxy"),
    stranger: await of(proxies, "stranger"),
    client: await of(clients, "client"),
    unknown: await of(others, "proxy"),
  };
  return { ...files, certificates };
}

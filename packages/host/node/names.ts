/** DNS resolver of the system. */
import dns from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import type { Names } from "../src/names.ts";

/** Timeout of the first query to a name server; it doubles with each retry. */
const QUESTION_TIMEOUT_MS = 2000;
const QUESTION_TRIES = 3;

export const nodeNames: Names = {
  async lookupSrv(service, domain) {
    const resolver = new Resolver({ timeout: QUESTION_TIMEOUT_MS, tries: QUESTION_TRIES });
    // Read at each query: the process may have set its servers after this module was loaded.
    resolver.setServers(dns.getServers());
    const records = await resolver.resolveSrv(`_${service}._tcp.${domain}`);
    return records
      .sort((a, b) => a.priority - b.priority || b.weight - a.weight)
      .map(({ name, port, priority, weight }) => ({
        host: name.replace(/\.$/, ""),
        port,
        priority,
        weight,
      }));
  },
  async resolveHost(host) {
    return (await lookup(host)).address;
  },
};

/** The system's resolver. */
import dns from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import type { Names } from "../src/names.ts";

/** A name server has so long for the first answer, and twice as long for each further try. */
const QUESTION_TIMEOUT_MS = 2000;
const QUESTION_TRIES = 3;

export const nodeNames: Names = {
  async lookupSrv(service, domain) {
    const resolver = new Resolver({ timeout: QUESTION_TIMEOUT_MS, tries: QUESTION_TRIES });
    // Those of the process, asked for now: they may have been set after this module was loaded.
    resolver.setServers(dns.getServers());
    const records = await resolver.resolveSrv(`_${service}._tcp.${domain}`);
    return records
      .sort((a, b) => a.priority - b.priority || b.weight - a.weight)
      .map(({ name, port }) => ({ host: name.replace(/\.$/, ""), port }));
  },
  async resolveHost(host) {
    return (await lookup(host)).address;
  },
};

/** The system's resolver. */
import { lookup, resolveSrv } from "node:dns/promises";
import type { Names } from "../src/names.ts";

export const nodeNames: Names = {
  async lookupSrv(service, domain) {
    const records = await resolveSrv(`_${service}._tcp.${domain}`);
    return records
      .sort((a, b) => a.priority - b.priority || b.weight - a.weight)
      .map(({ name, port }) => ({ host: name.replace(/\.$/, ""), port }));
  },
  async resolveHost(host) {
    return (await lookup(host)).address;
  },
};

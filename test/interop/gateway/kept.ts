/** The requests whose responses of etcd 3.7.3 are stored beside this file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayResponse } from "./exchange.ts";

export const KEPT_SEED = 1;
/** Random requests after those of the script. */
export const KEPT_COUNT = 300;

/** etcd's responses, in the order of the requests. */
export function keptResponses(): GatewayResponse[] {
  const text = readFileSync(join(import.meta.dirname, "etcd-3.7.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as GatewayResponse);
}

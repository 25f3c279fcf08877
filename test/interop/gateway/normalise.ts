/**
 * What differs between two members that do the same: the spaces of etcd's build, which its JSON
 * library puts behind commas or not by a hash of the executable, and values of one member alone.
 */

import type { GatewayResponse } from "./exchange.ts";
import type { GatewayRequest } from "./requests.ts";

/** Sizes and positions of one member's own files and log, by path. */
const OWN_VALUES: readonly (readonly [path: RegExp, value: RegExp])[] = [
  [/maintenance\/status/, /"(version|dbSize|dbSizeInUse|raftIndex|raftAppliedIndex)":"[^"]*"/g],
  [/maintenance\/hash$/, /"(hash)":\d+/g],
  [/maintenance\/snapshot/, /"(version|remaining_bytes|blob)":"[^"]*"/g],
  [/lease\/(timetolive|keepalive)/, /"(TTL)":"\d+"/g],
  [/auth\/authenticate/, /"(token)":"[^"]*"/g],
  [/./, /"(raft_term)":"\d+"/g],
];

/** A response as it is compared. */
export function normalised(
  { path }: GatewayRequest,
  { status, headers, body, end }: GatewayResponse,
): GatewayResponse {
  let text = withoutSpaces(body);
  for (const [paths, values] of OWN_VALUES) {
    if (paths.test(path.replace(/\?.*/, ""))) text = text.replace(values, '"$1":*');
  }
  if (path.includes("lease/leases")) text = sortedLeases(text);
  if (path.includes("maintenance/snapshot")) text = distinctLines(text);
  // Go's redirects are those of a browser's page in another version.
  return { status, headers, body: text, end };
}

/** Spaces between the tokens of JSON, outside of its strings. */
function withoutSpaces(body: string): string {
  return body.replace(/("(?:[^"\\]|\\.)*")|(?<=,) /g, (_, text?: string) => text ?? "");
}

function sortedLeases(body: string): string {
  return body.replace(/"leases":\[([^\]]*)\]/, (_, list: string) => {
    // Leases of elections have ids of their own.
    const known = list.split(",").filter((one) => !/\d{9}/.test(one));
    return `"leases":[${known.sort().join(",")}]`;
  });
}

function distinctLines(body: string): string {
  return [...new Set(body.split("\n"))].sort().join("\n");
}

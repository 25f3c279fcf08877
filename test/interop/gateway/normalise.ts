/**
 * What differs between two members that do the same: the spaces of etcd's build, which its JSON
 * library puts behind commas, and makes no-break ones of in errors, by a hash of the executable;
 * and values of one member alone.
 */

import type { GatewayResponse } from "./exchange.ts";
import type { GatewayRequest } from "./request.ts";

/** Sizes and positions of one member's own files and log, by path. */
const OWN_VALUES: readonly (readonly [path: RegExp, value: RegExp])[] = [
  [/maintenance\/status/, /"(version|dbSize|dbSizeInUse|raftIndex|raftAppliedIndex)":"[^"]*"/g],
  [/maintenance\/hash$/, /"(hash)":\d+/g],
  [/lease\/(timetolive|keepalive)/, /"(TTL)":"\d+"/g],
  [/auth\/authenticate/, /"(token)":"[^"]*"/g],
  [/./, /"(raft_term)":"\d+"/g],
];

/** A response as it is compared. */
export function normalised(
  request: GatewayRequest,
  { status, headers, body, end }: GatewayResponse,
): GatewayResponse {
  const path = decodeURIComponent(request.path.replace(/\?.*/, ""));
  let text = withoutSpaces(body).replaceAll("proto:\u00a0", "proto: ");
  for (const [paths, values] of OWN_VALUES) {
    if (paths.test(path)) text = text.replace(values, '"$1":*');
  }
  if (path.includes("lease/leases")) text = sortedLeases(text);
  // etcd's are in the order of a map.
  if (path.includes("lease/timetolive")) text = text.replace(/(?<="keys":\[)[^\]]*/, sortedItems);
  // Each has files of its own; that a snapshot can be restored, other tests show.
  if (path.includes("maintenance/snapshot")) text = text.replace(/^\{"result":.*\n/gm, "");
  return { status, headers, body: text, end };
}

/** Spaces between the tokens of JSON, outside of its strings. */
function withoutSpaces(body: string): string {
  return body.replace(/("(?:[^"\\]|\\.)*")|(?<=,) /g, (_, text?: string) => text ?? "");
}

function sortedItems(list: string): string {
  return list.split(",").sort().join(",");
}

function sortedLeases(body: string): string {
  return body.replace(/,?"leases":\[([^\]]*)\]/, (_, list: string) => {
    // Leases of elections, and granted without an id, have ids of their own and end at some time.
    const known = list.split(",").filter((one) => one !== "" && !/\d{9}/.test(one));
    return known.length === 0 ? "" : `,"leases":[${known.sort().join(",")}]`;
  });
}

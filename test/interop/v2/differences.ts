/** Intended differences between etcd 3.4's v2 API and ours; docs/guide/v2.md has them. */
import type { Known } from "./compare.ts";

const isWait = (request: string): boolean => request.includes("wait=true");

export const KNOWN: readonly Known[] = [
  {
    why: "a wait does not see hidden nodes below its path in the history either",
    holds: (request, expected) => isWait(request) && /"node":\{"key":"[^"]*\/_/.test(expected),
  },
  {
    why: "a wait on a node that does not exist does not see that a directory above was deleted",
    holds: (request, expected, actual) => {
      const key = /"action":"(?:delete|expire)","node":\{"key":"([^"]*)","dir":true/.exec(expected);
      const path = decodeURIComponent(/^GET \/v2\/keys([^?]*)/.exec(request)?.[1] ?? "");
      return isWait(request) && key !== null && path.startsWith(key[1]) && actual !== expected;
    },
  },
];

/** /debug/vars: what etcd shows there by Go's expvar, as far as it exists here. */

import type { HttpHandler } from "@quorate/host";
import { plainError } from "@quorate/host";
import { idToHex } from "@quorate/proto";
import type { ProgressState, Role, Status } from "@quorate/raft";

const ROLES: Readonly<Record<Role, string>> = {
  follower: "StateFollower",
  "pre-candidate": "StatePreCandidate",
  candidate: "StateCandidate",
  leader: "StateLeader",
};
const STATES: Readonly<Record<ProgressState, string>> = {
  probe: "StateProbe",
  replicate: "StateReplicate",
  snapshot: "StateSnapshot",
};

/**
 * A JSON object: the program's name, memory in bytes (under the names of Go's runtime that have a
 * meaning here), and Raft's state in etcd's form, with ids in hexadecimal; `progress` has the
 * members, on the leader alone. The arguments of the command line are not in it: the port may be
 * open to everyone, and flags may hold secrets.
 */
export function debugVarsEndpoint(raftStatus: () => Status): HttpHandler {
  return (request) => {
    if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const memory = process.memoryUsage();
    const body = JSON.stringify({
      cmdline: ["quorate"],
      memstats: {
        Alloc: memory.heapUsed + memory.external,
        HeapAlloc: memory.heapUsed,
        HeapSys: memory.heapTotal,
        Sys: memory.rss,
      },
      "raft.status": raftVars(raftStatus()),
    });
    return { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body };
  };
}

function raftVars(status: Status): Record<string, unknown> {
  const progress = status.progress.map(({ id, match, next, state }) => [
    idToHex(id),
    { match, next, state: STATES[state] },
  ]);
  return {
    id: idToHex(status.id),
    term: status.term,
    vote: idToHex(status.vote),
    commit: status.commit,
    lead: idToHex(status.leader),
    raftState: ROLES[status.role],
    applied: status.applied,
    progress: Object.fromEntries(progress),
    leadtransferee: idToHex(status.leadTransferee),
  };
}

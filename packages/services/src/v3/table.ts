/**
 * All services of a member as one table, with what holds for every method: errors become statuses,
 * a client that asks for a leader gets none without one (metadata "hasleader"), a learner answers
 * only what etcd's learners answer, calls are counted by client version.
 */

import type { Member } from "@quorate/member";
import { RPC_RULES } from "@quorate/member";
import { errorOf, KVService, MaintenanceService, services } from "@quorate/proto";
import type { CallContext, ServiceTable, StreamHandler, UnaryHandler } from "@quorate/rpc";
import { unimplemented, withStatuses } from "../calls/status.ts";
import { electionService, electionStreams } from "../concurrency/election-service.ts";
import { lockService } from "../concurrency/lock-service.ts";
import { authService } from "./auth.ts";
import { ClientVersions } from "./client-versions.ts";
import { clusterService } from "./cluster.ts";
import { downgradeService } from "./downgrade.ts";
import { kvService } from "./kv.ts";
import { leaseService, leaseStreams } from "./lease.ts";
import { maintenanceService } from "./maintenance.ts";
import { pageHandler } from "./pages.ts";
import { rangeStreams } from "./range-stream.ts";
import { type RequestCheck, requestCheck } from "./request-work.ts";
import { admitByRule, ruled, ruleOf } from "./rpc-rules.ts";
import { snapshotStreams } from "./snapshot.ts";
import { StreamGuard } from "./streams.ts";
import { watchService } from "./watch.ts";

/**
 * What a learner answers; a range only if it is serializable, which the handler's read decides
 * (etcd: api/v3rpc/interceptor.go).
 */
const LEARNER_METHODS = new Set<string>([
  KVService.methods.Range.path,
  MaintenanceService.methods.Status.path,
  MaintenanceService.methods.Hash.path,
  MaintenanceService.methods.HashKV.path,
]);

function admit(member: Member, context: CallContext): void {
  if (member.isLearner && !LEARNER_METHODS.has(context.path))
    throw errorOf("NotSupportedForLearner");
  if (member.leader === 0n && context.metadata("hasleader") === "true") throw errorOf("NoLeader");
}

function unary(
  member: Member,
  handler: UnaryHandler,
  versions: ClientVersions,
  check: RequestCheck,
): UnaryHandler {
  const permitted = ruled(member, handler);
  return (request, context) => {
    admit(member, context);
    versions.counted("unary", context).add();
    check(request);
    return permitted(request, context);
  };
}

/** Of the streams, learners offer the snapshot alone. */
function streamGuard(member: Member, versions: ClientVersions): StreamGuard {
  return new StreamGuard({
    clock: member.clock,
    electionTimeoutMs: member.config.electionTimeoutMs,
    hasLeader: () => member.leader !== 0n,
    isRuled: (path) => RPC_RULES.get(path)?.rule === "root",
    admitByRule: (context) => admitByRule(member, context),
    authChanges: member.auth.changes,
    admit: (context) => {
      if (member.isLearner && context.path !== MaintenanceService.methods.Snapshot.path)
        throw errorOf("NotSupportedForLearner");
      if (member.leader === 0n && context.metadata("hasleader") === "true")
        throw errorOf("NoLeader");
      if (member.auth.authority.isEnforced) ruleOf(context.path);
      versions.counted("stream", context).add();
    },
  });
}

/**
 * What stands around each unary handler: `withStatuses`, or nothing, where a layer above turns errors
 * into statuses, as it waits for the response itself. A call has one promise then, and not two.
 */
type Outermost = (handler: UnaryHandler) => UnaryHandler;

/**
 * Range page by page, for lists over HTTP: the method Range of a table of its own, with the rules
 * of every method. A response has the first records of the range, and `more`; the request's
 * order and filters are ignored, and `count` is 0.
 */
export function pageTable(member: Member, outermost: Outermost = withStatuses): ServiceTable {
  const { Range } = KVService.methods;
  const check = requestCheck(Range, member.config.maxTxnOps);
  const handler = unary(
    member,
    pageHandler(member),
    new ClientVersions(member.metrics.clientRequests),
    check,
  );
  return { unary: new Map([[Range.path, outermost(handler)]]), stream: new Map() };
}

/**
 * The table that an engine serves. Methods of etcd's services that this version does not offer
 * answer UNIMPLEMENTED by their name.
 */
export function serviceTable(member: Member, outermost: Outermost = withStatuses): ServiceTable {
  const handlers = new Map([
    ...kvService(member),
    ...maintenanceService(member),
    ...clusterService(member),
    ...downgradeService(member),
    ...leaseService(member),
    ...lockService(member),
    ...electionService(member),
    ...authService(member),
  ]);
  const streamHandlers = new Map([
    ...rangeStreams(member),
    ...watchService(member),
    ...leaseStreams(member),
    ...electionStreams(member),
    ...snapshotStreams(member),
  ]);
  const versions = new ClientVersions(member.metrics.clientRequests);
  const guard = streamGuard(member, versions);
  const unaries = new Map<string, UnaryHandler>();
  const streams = new Map<string, StreamHandler>();
  for (const service of services) {
    for (const method of Object.values(service.methods)) {
      const handler = handlers.get(method.path);
      const refuse = () => {
        throw unimplemented(method.name);
      };
      const check = requestCheck(method, member.config.maxTxnOps);
      if (method.requestStream || method.responseStream) {
        const streamHandler = streamHandlers.get(method.path);
        streams.set(
          method.path,
          streamHandler === undefined ? refuse : guard.guard(streamHandler, check),
        );
      } else
        unaries.set(
          method.path,
          handler === undefined ? refuse : outermost(unary(member, handler, versions, check)),
        );
    }
  }
  return { unary: unaries, stream: streams };
}

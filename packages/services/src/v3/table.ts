/**
 * All services of a member as one table, with what holds for every method: errors become statuses,
 * a client that asks for a leader gets none without one (metadata "hasleader"), a learner answers
 * only what etcd's learners answer, calls are counted by client version.
 */
import {
  type Access,
  callerOf,
  type Member,
  pinned,
  RPC_RULES,
  type RpcRule,
  type SliceTask,
} from "@quorate/member";
import type { Counter, Family } from "@quorate/metrics";
import {
  AuthService,
  errorOf,
  KVService,
  MaintenanceService,
  RangeRequest,
  services,
} from "@quorate/proto";
import {
  type CallContext,
  promised,
  type ServiceTable,
  type StreamHandler,
  type UnaryHandler,
  type UnaryResponse,
  type UnaryResult,
} from "@quorate/rpc";
import { checkRange, keyRange, rangeChunk, type Steps } from "@quorate/store";
import { unimplemented, withStatuses } from "../calls/results.ts";
import { electionService, electionStreams } from "../concurrency/election-service.ts";
import { lockService } from "../concurrency/lock-service.ts";
import { authService } from "./auth.ts";
import { clusterService, downgradeService } from "./cluster.ts";
import { kvService } from "./kv.ts";
import { leaseService, leaseStreams } from "./lease.ts";
import { maintenanceService } from "./maintenance.ts";
import { messageOf, RangeWriter } from "./range-answer.ts";
import { rangeStreams } from "./range-stream.ts";
import { type RequestCheck, requestCheck, SMALL_REQUEST_BYTES } from "./request-work.ts";
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
  return (request, context) => {
    admit(member, context);
    versions.counted("unary", context).add();
    if (request.length > SMALL_REQUEST_BYTES) check(request);
    return member.store.auth.isEnabled
      ? ruled(member, handler, request, context)
      : handler(request, context);
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
      if (member.store.auth.isEnabled) ruleOf(context.path);
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

/** Accesses that need what the rules are named by. */
const ROOT_ACCESS: Access = { kind: "defragment" };
const USER_ACCESS: Access = { kind: "status" };
const AUTH_PATHS = `/${AuthService.typeName}/`;

/** @throws EtcdError for a method that has no rule */
function ruleOf(path: string): RpcRule {
  const row = RPC_RULES.get(path);
  if (row === undefined) throw errorOf("PermissionDenied");
  return row.rule;
}

/**
 * Permits a call by its method's rule.
 * @throws EtcdError UserEmpty, UserNotFound, PermissionDenied, InvalidAuthToken
 */
function admitByRule(member: Member, context: CallContext): void | Promise<void> {
  if (!member.store.auth.isEnabled) return;
  const rule = ruleOf(context.path);
  if (rule === "open" || rule === "keys") return;
  const access = rule === "root" ? ROOT_ACCESS : USER_ACCESS;
  const admission = member.auth.authority.admit(callerOf(context), access);
  if (admission instanceof Promise) return admission.then(() => {});
}

/**
 * A call behind its method's rule, while users and roles are enforced. Permission for keys is
 * decided in the handler's way into the member.
 */
function ruled(
  member: Member,
  handler: UnaryHandler,
  request: Uint8Array,
  context: CallContext,
): UnaryResult {
  if (context.path.startsWith(AUTH_PATHS)) return ruledAuth(member, handler, request, context);
  const admitted = admitByRule(member, context);
  return admitted instanceof Promise
    ? admitted.then(() => promised(handler(request, context)))
    : handler(request, context);
}

/** A call of the Auth service sees the changes of users and roles before it. */
async function ruledAuth(
  member: Member,
  handler: UnaryHandler,
  request: Uint8Array,
  context: CallContext,
): Promise<UnaryResponse> {
  if (ruleOf(context.path) === "root") await member.permit(callerOf(context), ROOT_ACCESS);
  return handler(request, context);
}

/** Versions that have a label of their own. */
export const MAX_CLIENT_VERSIONS = 32;
/** As long as a version with a pre-release and a build may reasonably be. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,31}$/;

type CallKind = "unary" | "stream";

/**
 * The version that clients say they have (metadata "client-api-version"), as a label of a metric.
 * A client may send any text: one that is not a version, or that comes when many versions are
 * known already, counts as "other".
 */
export class ClientVersions {
  readonly #requests: Family<Counter>;
  /** The counters of the last version. */
  #unary: Counter | undefined;
  #stream: Counter | undefined;
  readonly #known = new Set<string>();
  /** The last one asked for: most calls come from clients of one version. */
  #last: string | undefined;
  #lastLabel = "unknown";

  /** @param requests counts calls by kind and version */
  constructor(requests: Family<Counter>) {
    this.#requests = requests;
  }

  /** The counter of a call. */
  counted(kind: CallKind, context: Pick<CallContext, "metadata">): Counter {
    const version = context.metadata("client-api-version");
    const before = this.#lastLabel;
    const label = this.label(version);
    if (label !== before) {
      this.#unary = undefined;
      this.#stream = undefined;
    }
    if (kind === "unary") return (this.#unary ??= this.#requests.with(kind, label));
    return (this.#stream ??= this.#requests.with(kind, label));
  }

  /** The label for what a client said; "unknown" if it said nothing. */
  label(version: string | undefined): string {
    if (version === this.#last) return this.#lastLabel;
    this.#lastLabel = this.#find(version);
    this.#last = version;
    return this.#lastLabel;
  }

  #find(version: string | undefined): string {
    if (version === undefined) return "unknown";
    if (this.#known.has(version)) return version;
    if (this.#known.size >= MAX_CLIENT_VERSIONS || !VERSION.test(version)) return "other";
    this.#known.add(version);
    return version;
  }
}

/**
 * Bounds of one page: what a list keeps in memory at a time, and encodes in a few milliseconds. One
 * record may be larger.
 */
export const PAGE_BOUNDS: { readonly maxKeys: number; readonly maxBytes: number } = {
  maxKeys: 1000,
  maxBytes: 256 << 10,
};

/** Range, bounded by PAGE_BOUNDS, and by the request's limit where that is less. */
function pageHandler(member: Member): UnaryHandler {
  return (bytes, context) => {
    const request = RangeRequest.decode(bytes);
    const error = checkRange(request);
    if (error !== undefined) throw errorOf(error);
    const caller = callerOf(context);
    return member.read(caller, {
      access: { kind: "range", request },
      linearizable: !request.serializable,
      run: () => member.slices.run(caller, (task) => pageSteps(member, request, task)),
    });
  };
}

function* pageSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<UnaryResponse> {
  const writer = new RangeWriter(task.charge);
  const { revision, keysOnly } = request;
  const { maxKeys, maxBytes } = PAGE_BOUNDS;
  const chunk = {
    keys: keyRange(request.key, request.rangeEnd),
    revision,
    keysOnly,
    maxBytes,
    limit: request.limit > 0 ? Math.min(request.limit, maxKeys) : maxKeys,
  };
  const read = yield* pinned(member, task, (view) => rangeChunk(view, chunk, writer));
  const more = read.last !== undefined;
  return messageOf(writer.finish(member.header(read.revision), { more, count: 0 }));
}

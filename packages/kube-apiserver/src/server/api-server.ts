/**
 * The API server as a handler of HTTP exchanges: the filters in Kubernetes' order, then the
 * handlers (apiserver: pkg/server/config.go, DefaultBuildHandlerChain).
 *
 *     request info -> audit id -> deadline -> authentication -> audit -> impersonation -> priority
 *         -> authorization -> documents (discovery, health, ...) or handlers of resources
 *
 * It knows no sockets, files or timers but the clock's; node/ has those.
 */
import {
  BriefSet,
  type Clock,
  type HttpExchange,
  type HttpExchangeHandler,
  parseDuration,
  type Timer,
} from "@quorate/host";
import {
  type Authenticator,
  badRequest,
  internalError,
  newUid,
  type ServedResources,
  type UserInfo,
  unauthorized,
  unlessAborted,
} from "@quorate/kube-storage";
import { escapeHtml, quoteText as goQuote } from "@quorate/proto";
import { type Auditor, attemptedMethods, NO_USER } from "../audit/auditor.ts";
import { forbiddenError } from "../authn/forbidden.ts";
import { impersonatedUser } from "../authn/impersonation.ts";
import { Call } from "../handlers/call.ts";
import { serveResource } from "../handlers/dispatch.ts";
import { apiErrorOf, type HandlerDeps, WRITE_TIMEOUT_MS } from "../handlers/resource-call.ts";
import { sendError } from "../handlers/send-object.ts";
import { requestTimeout, unreadablePath } from "../handlers/statuses.ts";
import { attributesOf, Query, Target } from "../handlers/target.ts";
import { ApiMetrics, WatchTable } from "./api-metrics.ts";
import { Discovery, type RemoteVersions } from "./discovery.ts";
import { levelOf, PriorityLevels } from "./priority-levels.ts";
import { type DocumentParts, Documents } from "./routes.ts";

const MAX_AUDIT_ID_CHARS = 64;

export interface ApiServerOptions {
  /** The longest time of a request that is no watch (--request-timeout). */
  readonly requestTimeoutMs: number;
  /** --max-requests-inflight and --max-mutating-requests-inflight together. */
  readonly maxInFlight: number;
}

export interface ApiServerDeps
  extends Omit<HandlerDeps, "watches" | "writeTimeouts">,
    Omit<DocumentParts, "discovery" | "send"> {
  readonly authenticator: Authenticator;
  /** Undefined: no request is recorded. */
  readonly auditor: Auditor | undefined;
  readonly resources: ServedResources;
  /** Groups and versions of other servers. */
  readonly remote: RemoteServers;
}

/** What other API servers serve. */
export interface RemoteServers extends RemoteVersions {
  /** The promise of a response, where another server serves the path. Rejects with ApiError. */
  serve(call: Call): Promise<void> | undefined;
}

export class ApiServer {
  readonly metrics: ApiMetrics;
  readonly watches: WatchTable;
  readonly discovery: Discovery;
  readonly #options: ApiServerOptions;
  readonly #deps: ApiServerDeps;
  readonly #handlers: HandlerDeps;
  readonly #levels: PriorityLevels;
  readonly #documents: Documents;
  readonly #timeouts: SharedTimeouts;
  #open = 0;

  constructor(options: ApiServerOptions, deps: ApiServerDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#timeouts = new SharedTimeouts(deps.clock, options.requestTimeoutMs);
    this.#levels = new PriorityLevels(options.maxInFlight, deps.clock);
    this.metrics = new ApiMetrics(this.#levels);
    this.watches = new WatchTable(this.metrics);
    const writeTimeouts = new SharedTimeouts(deps.clock, WRITE_TIMEOUT_MS);
    this.#handlers = { ...deps, writeTimeouts, watches: this.watches };
    this.discovery = new Discovery(deps.resources, deps.remote);
    this.#documents = new Documents({ ...deps, discovery: this.discovery, send: deps });
  }

  /** Requests that are being served, watches included. */
  get openRequests(): number {
    return this.#open;
  }

  /** Serves a request. */
  readonly handle: HttpExchangeHandler = (exchange) => {
    const { head } = exchange;
    const query = new Query(head.query);
    const target = Target.of(head.method, head.path, query);
    const auditId = this.#auditId(exchange);
    const call = new Call(exchange, { target, query }, auditId, this.#nowMs());
    call.setHeader("audit-id", auditId);
    call.setHeader("cache-control", "no-cache, private");
    void this.#serve(call);
    return call.listener;
  };

  /** Serves the call to its end; all failures end in a response. */
  async #serve(call: Call): Promise<void> {
    this.#open++;
    const isLong = call.target.isLongRunning;
    const forget = isLong ? undefined : this.#timeouts.add(() => timedOut(call));
    const ended = isLong ? undefined : this.metrics.began(call);
    try {
      const filtered = this.#filtered(call, isLong);
      await (isLong ? filtered : unlessAborted(call.canceller, filtered));
    } catch (error) {
      await this.#failed(call, error);
    } finally {
      forget?.();
      ended?.();
      this.#open--;
      this.metrics.ended(call, this.#nowMs());
    }
  }

  async #failed(call: Call, error: unknown): Promise<void> {
    if (call.isOver) return;
    if (call.hasResponse) {
      // A part of the response is out: only its cut end shows that it is not complete.
      apiErrorOf(error, this.#deps.logger, call);
      call.abort();
      return;
    }
    await sendError(call, apiErrorOf(error, this.#deps.logger, call));
  }

  async #filtered(call: Call, isLong: boolean): Promise<void> {
    const timer = this.#ownDeadline(call, isLong);
    try {
      call.user = await this.#authenticated(call);
      if (this.#deps.auditor !== undefined) this.#beginAudit(call, this.#deps.auditor, isLong);
      const { problem } = call.target;
      if (problem !== undefined) throw unreadablePath(call.head.path, problem);
      await this.#impersonate(call);
      const release = isLong ? () => {} : await this.#seat(call);
      try {
        if (await this.#isAuthorized(call)) await this.#routed(call);
      } finally {
        release();
      }
    } finally {
      timer?.cancel();
    }
  }

  /** ?timeout=10s shortens the server's own timeout. Throws ApiError 400. */
  #ownDeadline(call: Call, isLong: boolean) {
    const text = call.query.first("timeout");
    if (isLong || text === "") return undefined;
    const timeoutMs = parseDuration(text);
    if (typeof timeoutMs !== "number") {
      const why = `invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(text)}`;
      this.#auditFailed(call, why);
      throw badRequest(why);
    }
    if (timeoutMs <= 0 || timeoutMs >= this.#options.requestTimeoutMs) return undefined;
    return this.#deps.clock.after(timeoutMs, () => timedOut(call));
  }

  async #authenticated(call: Call): Promise<UserInfo> {
    const { head } = call;
    try {
      const user = await this.#deps.authenticator.authenticate(head);
      if (user !== undefined) return user;
      throw unauthorized();
    } catch (error) {
      const hasCertificate =
        head.peerCommonName !== undefined || head.peerCertificateError !== undefined;
      this.#auditFailed(call, attemptedMethods(head, hasCertificate));
      throw error;
    }
  }

  async #impersonate(call: Call): Promise<void> {
    const found = await impersonatedUser(
      call.head,
      attributesOf(call.target, call.user),
      this.#deps.authorizer,
    );
    if (found === undefined) return;
    call.audit?.impersonated(found.user, found.constraint);
    call.user = found.user;
  }

  /** Throws ApiError 500 where the request may not be served without a record. */
  #beginAudit(call: Call, auditor: Auditor, isLong: boolean): void {
    const { head, auditId, startedMs } = call;
    if (call.isOver) return;
    const attributes = attributesOf(call.target, call.user);
    const audit = auditor.begin({ head, auditId, attributes, isLong, startedMs });
    if (audit === "refused") throw internalError("failed to store audit event");
    call.audit = audit;
  }

  /** Records a request that fails before it has a user. */
  #auditFailed(call: Call, message: string): void {
    const { head, auditId, startedMs } = call;
    const attributes = attributesOf(call.target, NO_USER);
    const request = { head, auditId, attributes, isLong: true, startedMs };
    call.audit = this.#deps.auditor?.failed(request, message);
  }

  async #seat(call: Call): Promise<() => void> {
    const level = levelOf(call.user, call.target);
    call.setHeader("x-kubernetes-pf-flowschema-uid", level);
    call.setHeader("x-kubernetes-pf-prioritylevel-uid", level);
    const release = await this.#levels.seat(level, call.user.name);
    if (!call.canceller.aborted) return release;
    release();
    throw call.canceller.reason;
  }

  /** False where the authorizer failed; the response is then out. Throws ApiError 403. */
  async #isAuthorized(call: Call): Promise<boolean> {
    const attributes = attributesOf(call.target, call.user);
    const { decision, reason, error } = await this.#deps.authorizer.authorize(attributes);
    const isAllowed = decision === "allow";
    if (!isAllowed && error !== undefined) {
      call.audit?.annotate("authorization.k8s.io/reason", "internal error");
      undecided(call, error);
      return false;
    }
    call.audit?.annotate("authorization.k8s.io/decision", isAllowed ? "allow" : "forbid");
    call.audit?.annotate("authorization.k8s.io/reason", reason);
    if (isAllowed) return true;
    call.setHeader("x-content-type-options", "nosniff");
    throw forbiddenError(attributes, reason);
  }

  async #routed(call: Call): Promise<void> {
    const forwarded = this.#deps.remote.serve(call);
    if (forwarded !== undefined) return forwarded;
    if (call.target.isResourceRequest) {
      await serveResource(call, this.#deps.resources, this.#handlers);
      return;
    }
    await this.#documents.serve(call);
  }

  #auditId(exchange: HttpExchange): string {
    const given = exchange.head.headers.get("audit-id") ?? "";
    if (given !== "" && given.length <= MAX_AUDIT_ID_CHARS && /^[\x21-\x7e]+$/.test(given))
      return given;
    return newUid(this.#deps.random);
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }
}

/** No authorizer allows the request, and one has failed (responsewriters.InternalError). */
function undecided(call: Call, error: string): void {
  const { path, query } = call.head;
  const uri = escapeHtml(query === "" ? path : `${path}?${query}`, /[&<>]/g);
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
  };
  call.respond(500, headers, `Internal Server Error: ${goQuote(uri)}: ${error}\n`);
}

/**
 * A response that has begun goes on while its client reads, however long a list is: to cut it off
 * would look like a failure of the connection. The engine ends those that stall.
 */
function timedOut(call: Call): void {
  if (!call.hasResponse) call.canceller.abort(requestTimeout());
}

/** The timer looks so often, so that an idle server soon has none. */
const LOOK_MS = 1000;

interface Entry {
  readonly dueMs: number;
  readonly task: () => void;
}

/**
 * Timeouts of one length for many requests, with one timer: a timer for each request costs more
 * than its authorization, and almost none ever fires.
 */
export class SharedTimeouts {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #delayMs: number;
  /** In the order in which they are due. */
  readonly #entries = new BriefSet<Entry>();
  #timer: Timer | undefined;

  /** @param delayMs of all timeouts */
  constructor(clock: Pick<Clock, "monotonicMs" | "after">, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  /** Timeouts that wait. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Calls `task` after the delay, unless the function that it returns was called before. The tasks
   * must not throw.
   */
  add(task: () => void): () => void {
    const entry = { dueMs: this.#clock.monotonicMs() + this.#delayMs, task };
    this.#entries.add(entry);
    this.#timer ??= this.#clock.after(Math.min(this.#delayMs, LOOK_MS), this.#look);
    return () => {
      this.#entries.delete(entry);
    };
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const entry of this.#entries) {
      if (entry.dueMs > nowMs) {
        this.#timer = this.#clock.after(Math.min(entry.dueMs - nowMs, LOOK_MS), this.#look);
        return;
      }
      this.#entries.delete(entry);
      entry.task();
    }
  };
}

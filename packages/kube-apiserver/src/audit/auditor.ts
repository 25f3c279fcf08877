/**
 * The audit log of an API server: for each request its level by the policy, and its events as lines
 * to a sink. The sink queues lines within a bound and writes them behind the requests.
 */
import { type Clock, type HttpHead, hostOfAddress } from "@quorate/host";
import type { UserInfo } from "@quorate/kube-storage";
import type { AuthorizerAttributes } from "../authz/authorizer.ts";
import { parseIpV4, parseIpV6 } from "../crd/validation/ip.ts";
import { type AuditEvent, type AuditFormat, eventLine } from "./event-line.ts";
import { type AuditLevel, type AuditPolicy, auditDecision } from "./policy.ts";
import { RequestAudit } from "./request-audit.ts";

const MAX_USER_AGENT_CHARS = 1024;
const CUT_USER_AGENT = "...TRUNCATED";

/** Takes lines; never blocks. What it cannot keep it drops and counts. */
export interface AuditLineSink {
  write(line: string): void;
  /** Whether lines are being written, and there is space for more. */
  readonly isWritable: boolean;
}

export interface AuditorOptions {
  readonly policy: AuditPolicy;
  readonly format: AuditFormat;
  /** Requests are refused while lines cannot be written (--audit-log-mode=blocking-strict). */
  readonly isStrict: boolean;
}

export interface AuditorDeps {
  readonly clock: Clock;
  readonly sink: AuditLineSink;
}

/** A request as far as it is known after authentication. */
export interface AuditedRequest {
  readonly head: HttpHead;
  readonly auditId: string;
  readonly attributes: AuthorizerAttributes;
  readonly isLong: boolean | "early";
  /** Monotonic time of its arrival. */
  readonly startedMs: number;
}

export class Auditor {
  readonly #options: AuditorOptions;
  readonly #deps: AuditorDeps;
  /** Events that were made, and requests by level, for metrics. */
  events = 0;
  readonly levels = new Map<AuditLevel, number>();
  /** Requests that were refused because the log could not be written. */
  refused = 0;

  constructor(options: AuditorOptions, deps: AuditorDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /**
   * Begins the record of a request, with its first stage.
   * @returns undefined where the policy does not record it; "refused" where it must be refused
   */
  begin(request: AuditedRequest): RequestAudit | "refused" | undefined {
    const audit = this.#open(request);
    if (audit === undefined || audit.stage("RequestReceived")) return audit;
    this.refused++;
    return "refused";
  }

  /** The record of a request that fails before it is served; it has the stage of its response. */
  failed(request: AuditedRequest, message: string): RequestAudit | undefined {
    return this.#open({ ...request, isLong: "early" }, message);
  }

  #open(request: AuditedRequest, message = ""): RequestAudit | undefined {
    const { clock } = this.#deps;
    const { attributes, head } = request;
    const decision = auditDecision(this.#options.policy, attributes);
    const { level } = decision;
    this.levels.set(level, (this.levels.get(level) ?? 0) + 1);
    if (level === "None") return undefined;
    const event: AuditEvent = {
      level,
      auditId: request.auditId,
      requestUri: head.query === "" ? head.path : `${head.path}?${head.query}`,
      verb: attributes.verb,
      user: attributes.user,
      impersonatedUser: undefined,
      impersonationConstraint: "",
      sourceIps: sourceIps(head),
      userAgent: cut(head.headers.get("user-agent") ?? ""),
      objectRef: attributes.isResourceRequest ? referenceOf(attributes) : undefined,
      responseStatus: message === "" ? undefined : { message },
      requestObject: undefined,
      responseObject: undefined,
      receivedMs: clock.wallMs() - (clock.monotonicMs() - request.startedMs),
      annotations: new Map(),
    };
    return new RequestAudit(event, decision, request.isLong, (it, stage) => {
      const { sink } = this.#deps;
      if (stage === "RequestReceived" && this.#options.isStrict && !sink.isWritable) return false;
      this.events++;
      const stageMs = stage === "RequestReceived" ? it.receivedMs : clock.wallMs();
      sink.write(eventLine(this.#options.format, it, stage, stageMs));
      return true;
    });
  }
}

function cut(userAgent: string): string {
  if (userAgent.length <= MAX_USER_AGENT_CHARS) return userAgent;
  return userAgent.slice(0, MAX_USER_AGENT_CHARS) + CUT_USER_AGENT;
}

function referenceOf(attributes: AuthorizerAttributes) {
  const { resource, namespace, name, group, version, subresource } = attributes;
  return {
    resource,
    namespace,
    name,
    uid: "",
    apiGroup: group,
    apiVersion: version,
    resourceVersion: "",
    subresource,
  };
}

/** What a request that could not be authenticated had tried. */
export function attemptedMethods(head: HttpHead, hasCertificate: boolean): string {
  const [scheme = "", credential] = (head.headers.get("authorization") ?? "").trim().split(" ", 2);
  const methods: string[] = [];
  if (credential !== undefined && scheme.toLowerCase() === "basic") methods.push("basic");
  if (credential !== undefined && scheme.toLowerCase() === "bearer") methods.push("bearer");
  if (/(?:^|&)access_token=[^&]/.test(head.query)) methods.push("access_token");
  if (hasCertificate) methods.push("x509");
  return methods.length === 0
    ? "Authentication failed, no credentials provided"
    : `Authentication failed, attempted: ${methods.join(", ")}`;
}

/** The user of a request that has none. */
export const NO_USER: UserInfo = { name: "", uid: "", groups: [], extra: {} };

/** Addresses that a client may claim in headers; further ones are left out. */
export const MAX_CLAIMED_ADDRESSES = 32;

/**
 * The addresses of a request's source, in the order of the audit log (apimachinery: util/net).
 * Those of X-Forwarded-For, then X-Real-Ip, then the connection's, which alone is certain.
 */
export function sourceIps({ headers, peerAddress }: HttpHead): readonly string[] {
  const found: string[] = [];
  for (const part of (headers.get("x-forwarded-for") ?? "").split(",", MAX_CLAIMED_ADDRESSES)) {
    const address = addressOf(part.trim());
    if (address !== undefined) found.push(address);
  }
  const real = addressOf((headers.get("x-real-ip") ?? "").trim());
  if (real !== undefined && !found.includes(real)) found.push(real);
  const remote = addressOf(hostOfAddress(peerAddress)) ?? addressOf(peerAddress);
  if (remote !== undefined && found.at(-1) !== remote) found.push(remote);
  return found;
}

/** In Go's form; undefined for what is no address. */
function addressOf(text: string): string | undefined {
  const v4 = parseIpV4(text.startsWith("::ffff:") ? text.slice(7) : text);
  if (v4 !== undefined) return v4.join(".");
  return parseIpV6(text) === undefined ? undefined : text.toLowerCase();
}

/**
 * Events of the audit log as lines (apiserver: pkg/apis/audit/v1/types.go, pkg/audit/format.go):
 *
 *     json    {"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata",...}
 *     legacy  2026-01-02T03:04:05.678Z AUDIT: id="..." stage="..." ip="..." method="get" ...
 */

import type { StatusDetails, UserInfo } from "@quorate/kube-storage";
import { goJson, microTime } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { userInfoObject } from "../authn/reviews.ts";
import type { AuditLevel, AuditStage } from "./policy.ts";

export type AuditFormat = "json" | "legacy";

/** What a request is about; its fields have the names of the line. */
export interface ObjectReference {
  resource: string;
  namespace: string;
  name: string;
  uid: string;
  apiGroup: string;
  apiVersion: string;
  resourceVersion: string;
  subresource: string;
}

/** The part of metav1.Status that is recorded. */
export interface RecordedStatus {
  status?: string;
  message?: string | undefined;
  reason?: string | undefined;
  details?: StatusDetails | undefined;
  code?: number | undefined;
}

/** A request as the audit log knows it. */
export interface AuditEvent {
  readonly level: AuditLevel;
  readonly auditId: string;
  readonly requestUri: string;
  readonly verb: string;
  readonly user: UserInfo;
  impersonatedUser: UserInfo | undefined;
  /** The mode by which the impersonation was allowed; "" for the plain one. */
  impersonationConstraint: string;
  readonly sourceIps: readonly string[];
  readonly userAgent: string;
  objectRef: ObjectReference | undefined;
  responseStatus: RecordedStatus | undefined;
  /** Bodies as JSON. */
  requestObject: string | undefined;
  responseObject: string | undefined;
  readonly receivedMs: number;
  readonly annotations: Map<string, string>;
}

/** One line, without its end. @param stageMs wall-clock time of the stage */
export function eventLine(
  format: AuditFormat,
  event: AuditEvent,
  stage: AuditStage,
  stageMs: number,
): string {
  return format === "json" ? jsonLine(event, stage, stageMs) : legacyLine(event, stage);
}

/** Without fields that have no value, as Go leaves them out. */
function filled(fields: object): Record<string, unknown> | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== "" && value !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function jsonLine(event: AuditEvent, stage: AuditStage, stageMs: number): string {
  const { impersonatedUser, impersonationConstraint, objectRef, responseStatus } = event;
  const head = {
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    level: event.level,
    auditID: event.auditId,
    stage,
    requestURI: event.requestUri,
    verb: event.verb,
    user: event.user.name === "" ? {} : userInfoObject(event.user),
    impersonatedUser: impersonatedUser && userInfoObject(impersonatedUser),
    authenticationMetadata: filled({ impersonationConstraint }),
    sourceIPs: event.sourceIps.length === 0 ? undefined : event.sourceIps,
    userAgent: event.userAgent || undefined,
    objectRef: objectRef && (filled(objectRef) ?? {}),
    responseStatus: responseStatus && { metadata: {}, ...responseStatus },
  };
  let line = goJson(head).slice(0, -1);
  if (event.requestObject !== undefined) line += `,"requestObject":${event.requestObject}`;
  if (event.responseObject !== undefined) line += `,"responseObject":${event.responseObject}`;
  line += `,"requestReceivedTimestamp":"${microTime(event.receivedMs)}"`;
  line += `,"stageTimestamp":"${microTime(stageMs)}"`;
  if (event.annotations.size > 0) {
    const sorted = [...event.annotations].sort(([a], [b]) => (a < b ? -1 : 1));
    line += `,"annotations":${goJson(Object.fromEntries(sorted))}`;
  }
  return `${line}}`;
}

function legacyLine(event: AuditEvent, stage: AuditStage): string {
  const { user, impersonatedUser: as, responseStatus, objectRef } = event;
  const groups = (list: readonly string[]): string => list.map(goQuote).join(",");
  const fields = {
    id: event.auditId,
    stage,
    ip: event.sourceIps[0] ?? "<unknown>",
    method: event.verb,
    user: user.name || "<none>",
    groups: user.name === "" || user.groups.length === 0 ? "<none>" : groups(user.groups),
    as: as?.name ?? "<self>",
    asgroups: as === undefined ? "<lookup>" : groups(as.groups),
    "user-agent": event.userAgent,
    namespace: objectRef?.namespace || "<none>",
    uri: event.requestUri,
  };
  const texts = Object.entries(fields).map(([name, text]) => `${name}=${goQuote(text)}`);
  const response = responseStatus === undefined ? "<deferred>" : String(responseStatus.code ?? 0);
  const time = new Date(event.receivedMs).toISOString();
  return `${time} AUDIT: ${texts.join(" ")} response="${response}"`;
}

/** An audit log in memory around services, for one client with a certificate. */
import { ManualClock } from "@quorate/host/testing";
import { type CallContext, LOCAL_CALL, type MessageBytes, type ServiceTable } from "@quorate/rpc";
import { Audit } from "../../src/audit/audit.ts";
import type { AuditSettings } from "../../src/audit/settings.ts";
import { lineSink } from "./audit-lines.ts";

/** A line of the log. */
export type Line = Readonly<Record<string, unknown>>;

/** An audit log, its lines so far, and its sink; level metadata and all calls by default. */
export function auditOf(more: Partial<AuditSettings> = {}) {
  const lines: Line[] = [];
  const sink = lineSink((line) => void lines.push(JSON.parse(line)));
  const settings: AuditSettings = {
    level: "metadata",
    prefixes: [],
    readSampling: 1,
    onFailure: "drop",
    ...more,
  };
  const audit = new Audit(settings, {
    clock: new ManualClock(),
    sink,
    identityOf: () => ({ user: "ann", provedBy: "certificate" }),
    hashValue: (value) => `hash of ${value.length}`,
  });
  return { audit, lines, sink };
}

/** A call of ann's. */
export function contextOf(path: string): CallContext {
  return { ...LOCAL_CALL, path, peerAddress: "10.0.0.7:1", peerCommonName: "ann" };
}

/** Services with one unary method. */
export function tableOf(
  path: string,
  handler: () => MessageBytes | Promise<MessageBytes>,
): ServiceTable {
  return { unary: new Map([[path, handler]]), stream: new Map() };
}

/** The audit log of a member: its target, its lines and its metrics. Loaded only where it is on. */
import { createHmac, randomBytes } from "node:crypto";
import type { Clock, Logger } from "@quorate/host";
import type { MetricRegistry } from "@quorate/metrics";
import { fromUtf8 } from "@quorate/proto";
import type { CallContext, ServiceTable } from "@quorate/rpc";
import { Audit } from "../../src/audit/audit.ts";
import type { ProvedIdentity } from "../../src/audit/settings.ts";
import type { AuditConfig } from "../../src/config/server-config.ts";
import { AuditOutput } from "./audit-output.ts";

export interface AuditLogDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: MetricRegistry;
  identityOf(context: CallContext): ProvedIdentity | undefined;
}

/** An audit log that is on. */
export interface RunningAudit {
  around(services: ServiceTable): ServiceTable;
  /** Opens the file again: something has moved it away. */
  reopen(): void;
  /** Writes what waits, for a bounded time. */
  stop(): Promise<void>;
}

/** Digits of a value's hash: 128 bits. */
const HASH_DIGITS = 32;

/** Opens the audit log. Rejects where its target cannot be one. */
export async function startAudit(
  config: AuditConfig,
  { clock, logger, registry, identityOf }: AuditLogDependencies,
): Promise<RunningAudit> {
  const output = new AuditOutput(config, { clock, logger });
  try {
    await output.start();
  } catch (error) {
    throw new Error(`--audit-log: ${(error as Error).message}`);
  }
  // A key of this process: equal values have equal hashes, and none can be found by trying.
  const key = randomBytes(32);
  const audit = new Audit(
    {
      level: config.level,
      prefixes: config.prefixes.map((prefix) => fromUtf8(prefix)),
      readSampling: config.readSampling,
      onFailure: config.onFailure,
    },
    {
      clock,
      sink: output,
      identityOf,
      hashValue: (value) =>
        createHmac("sha256", key).update(value).digest("hex").slice(0, HASH_DIGITS),
    },
  );
  auditMetrics(registry, output, audit);
  return {
    around: (services) => audit.around(services),
    reopen: () => output.reopen(),
    stop: () => output.close(),
  };
}

function auditMetrics(registry: MetricRegistry, output: AuditOutput, audit: Audit): void {
  const lines = registry.counters(
    "quorate_audit_lines_total",
    "Lines of the audit log that were written, and that were dropped because they could not be.",
    ["result"],
  );
  const [written, dropped] = [lines.with("written"), lines.with("dropped")];
  const failures = registry.counter(
    "quorate_audit_write_failures_total",
    "How often the audit log could not be written.",
  );
  const refused = registry.counter(
    "quorate_audit_refused_writes_total",
    "Writes of clients that were refused because the audit log could not be written.",
  );
  registry.gauge(
    "quorate_audit_queue_bytes",
    "Bytes of lines of the audit log that wait to be written.",
    () => output.queueBytes,
  );
  registry.onScrape(() => {
    written.value = output.writtenLines;
    dropped.value = output.droppedLines;
    failures.value = output.failures;
    refused.value = audit.refusedWrites;
  });
}

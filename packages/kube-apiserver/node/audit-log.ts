/**
 * The audit log among real files: the policy of --audit-policy-file, and lines in --audit-log-path,
 * which is rotated under the names that kube-apiserver's has (audit-2026-01-02T15-04-05.000.log).
 *
 *     Auditor -> RotatingFile (by size) -> AuditOutput (bounded queue) -> file
 *
 * What cannot be written waits in the queue; beyond its bound lines are dropped and counted.
 */
import { readFile } from "node:fs/promises";
import type { Clock, Logger } from "@quorate/host";
import { RotatingFile } from "@quorate/host/node";
import { parseYaml } from "@quorate/kube-storage";
import { MetricRegistry } from "@quorate/metrics";
import { toUtf8 } from "@quorate/proto";
import type { AuditOutput } from "@quorate/server/node";
import { type AuditLineSink, Auditor } from "../src/audit/auditor.ts";
import { AUDIT_LEVELS, type AuditPolicy } from "../src/audit/policy.ts";
import { parseAuditPolicy } from "../src/audit/policy-file.ts";
import type { AuditLogOptions } from "./serve-options.ts";

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_MAX_SIZE_MIB = 100;
/** A longer policy is refused. */
export const MAX_POLICY_BYTES: number = 1024 * 1024;

export interface AuditLogDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Another target of lines, in tests. */
  readonly newOutput?: (path: string) => Promise<AuditOutput>;
}

/** An audit log that is on. */
export interface AuditLog {
  readonly auditor: Auditor;
  readonly metrics: MetricRegistry;
  /** Writes what waits, for a bounded time. */
  close(): Promise<void>;
}

/**
 * Opens the log. Undefined where a path or the policy is not given: then no request is recorded.
 * Rejects with Error that says what is wrong with the policy or the file.
 */
export async function openAuditLog(
  options: AuditLogOptions,
  deps: AuditLogDeps,
): Promise<AuditLog | undefined> {
  const { policyFile, path } = options;
  if (policyFile === "" || path === "") {
    const missing = policyFile === "" ? "--audit-policy-file" : "--audit-log-path";
    if (policyFile !== path)
      deps.logger.warn("no request is recorded in an audit log", { reason: `${missing} is empty` });
    return undefined;
  }
  const policy = await readPolicy(policyFile, deps.logger);
  const output = await (deps.newOutput ?? ((at) => openOutput(at, deps)))(path);
  const sink = path === "-" ? output : rotating(output, options);
  const auditor = new Auditor(
    { policy, format: options.format, isStrict: options.isStrict },
    { clock: deps.clock, sink },
  );
  return { auditor, metrics: auditMetrics(auditor, output), close: () => output.close() };
}

async function readPolicy(path: string, logger: Logger): Promise<AuditPolicy> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > MAX_POLICY_BYTES)
      throw new Error(`it has more than ${MAX_POLICY_BYTES} bytes`);
    const { value } = await parseYaml(toUtf8(bytes));
    const { policy, unknownFields } = parseAuditPolicy(value);
    if (unknownFields.length > 0)
      logger.warn("the audit policy has unknown fields, which are ignored", {
        path,
        fields: unknownFields.slice(0, 10).join(", "),
      });
    return policy;
  } catch (error) {
    throw new Error(`--audit-policy-file ${path}: ${(error as Error).message}`);
  }
}

async function openOutput(path: string, { clock, logger }: AuditLogDeps): Promise<AuditOutput> {
  const { AuditOutput: Output } = await import("@quorate/server/node");
  const settings = { path, maxFileBytes: 0, maxFileAgeMs: 0, keepFiles: 0 };
  const output = new Output(settings, { clock, logger });
  try {
    await output.start();
  } catch (error) {
    throw new Error(`--audit-log-path: ${(error as Error).message}`);
  }
  return output;
}

/** Lines go into a new file when the present one is full. */
function rotating(output: AuditOutput, options: AuditLogOptions): AuditLineSink {
  const file = new RotatingFile(
    options.path,
    {
      maxFileBytes: (options.maxSizeMib || DEFAULT_MAX_SIZE_MIB) * MIB,
      maxAgeMs: options.maxAgeDays * DAY_MS,
      keepFiles: options.maxBackups,
      localTime: false,
      compress: options.compress,
    },
    output,
  );
  return {
    write: (line) => file.write(line),
    get isWritable() {
      return output.isWritable;
    },
  };
}

/** By kube-apiserver's names (apiserver: pkg/audit/metrics.go). */
function auditMetrics(auditor: Auditor, output: AuditOutput): MetricRegistry {
  const registry = new MetricRegistry();
  const events = registry.counter("apiserver_audit_event_total", "Events of the audit log.");
  const errors = registry.counters("apiserver_audit_error_total", "Events that were not written.", [
    "plugin",
  ]);
  const rejected = registry.counter(
    "apiserver_audit_requests_rejected_total",
    "Requests that were refused because their event could not be kept.",
  );
  const levels = registry.counters("apiserver_audit_level_total", "Requests by audit level.", [
    "level",
  ]);
  registry.gauge(
    "quorate_apiserver_audit_queue_bytes",
    "Bytes of events that wait to be written.",
    () => output.queueBytes,
  );
  registry.onScrape(() => {
    events.value = auditor.events;
    errors.with("log").value = output.droppedLines;
    rejected.value = auditor.refused;
    for (const level of AUDIT_LEVELS) levels.with(level).value = auditor.levels.get(level) ?? 0;
  });
  return registry;
}

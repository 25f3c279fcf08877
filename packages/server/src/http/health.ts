/**
 * /health, /livez and /readyz, as etcd answers them (etcd:
 * server/etcdserver/api/etcdhttp/health.go).
 *
 *     /health?serializable=true&exclude=NOSPACE   {"health":"true","reason":""}, or 503 with the
 *                                                 reason
 *     /livez  /readyz  ?verbose ?exclude=NAME     "ok", or 503 with a line for each check;
 *                                                 /readyz/NAME runs one check
 */

import type { HttpHandler, HttpRequest, HttpResponse } from "@quorate/host";
import { type Logger, plainError } from "@quorate/host";
import type { Member, MemberMetrics } from "@quorate/member";
import { alarmName, MEMBER_CALLER } from "@quorate/member";
import { errorOf, RangeRequest } from "@quorate/proto";
import { applyRange } from "@quorate/store";

/** The state of the member that the checks read. */
export interface HealthSource {
  /** Names of the alarms that are raised: "NOSPACE", "CORRUPT". */
  alarms(): readonly string[];
  hasLeader(): boolean;
  isLearner(): boolean;
  /** Reads one key; rejects when that does not work. */
  read(options: { serializable: boolean }): Promise<void>;
}

interface Check {
  readonly name: string;
  /** Resolves with undefined when all is well, else with what is wrong. */
  readonly run: () => Promise<string | undefined>;
}

/** Values of `key` in a query, those that are not empty. */
export function queryValues(query: string, key: string): string[] {
  const values: string[] = [];
  for (const part of query.split("&")) {
    const equals = part.indexOf("=");
    const name = equals < 0 ? part : part.slice(0, equals);
    if (unescapeQuery(name) !== key) continue;
    const value = equals < 0 ? "" : unescapeQuery(part.slice(equals + 1));
    if (value !== "") values.push(value);
  }
  return values;
}

function hasQueryKey(query: string, key: string): boolean {
  return query.split("&").some((part) => unescapeQuery(part.split("=", 1).join()) === key);
}

/** Percent and plus decoding; text that is not well formed stays as it is. */
function unescapeQuery(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** Answers /health. */
export function healthEndpoint(
  source: HealthSource,
  metrics: MemberMetrics,
  logger: Logger,
): HttpHandler {
  return async (request) => {
    if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const serializable = queryValues(request.query, "serializable")[0] === "true";
    const reason = await unhealthyReason(
      source,
      new Set(queryValues(request.query, "exclude")),
      serializable,
    );
    if (reason === undefined) {
      metrics.healthSuccess.add();
      return {
        status: 200,
        headers: { "content-type": "text/plain; charset=utf-8" },
        body: '{"health":"true","reason":""}',
      };
    }
    metrics.healthFailures.add();
    const output = JSON.stringify({ health: "false", reason });
    logger.warn("/health error", { output, "status-code": 503 });
    return plainError(503, output);
  };
}

async function unhealthyReason(
  source: HealthSource,
  excluded: ReadonlySet<string>,
  serializable: boolean,
): Promise<string | undefined> {
  const alarm = source.alarms().find((name) => !excluded.has(name));
  if (alarm !== undefined)
    return alarm === "NOSPACE" || alarm === "CORRUPT" ? `ALARM ${alarm}` : "ALARM UNKNOWN";
  if (!serializable && !source.hasLeader()) return "RAFT NO LEADER";
  try {
    await source.read({ serializable });
    return undefined;
  } catch (error) {
    return `RANGE ERROR:${errorText(error)}`;
  }
}

/** Answers /livez, /readyz and their single checks, by path. */
export function checkEndpoints(
  source: HealthSource,
  metrics: MemberMetrics,
  logger: Logger,
): ReadonlyMap<string, HttpHandler> {
  const read = (serializable: boolean) => async () => {
    try {
      await source.read({ serializable });
      return undefined;
    } catch (error) {
      return `range error: ${errorText(error)}`;
    }
  };
  const alive: Check[] = [{ name: "serializable_read", run: read(true) }];
  const ready: Check[] = [
    {
      name: "data_corruption",
      run: async () =>
        source.alarms().includes("CORRUPT") ? "alarm activated: CORRUPT" : undefined,
    },
    { name: "serializable_read", run: read(true) },
    { name: "linearizable_read", run: read(false) },
    {
      name: "non_learner",
      run: async () => (source.isLearner() ? "not supported for learner" : undefined),
    },
  ];
  const endpoints = new Map<string, HttpHandler>();
  for (const [type, checks] of [
    ["livez", alive],
    ["readyz", ready],
  ] as const) {
    endpoints.set(`/${type}`, (request) => {
      const excluded = new Set(queryValues(request.query, "exclude"));
      const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name));
      if (unknown.length > 0) {
        logger.warn("some health checks cannot be excluded", {
          "missing-health-checks": unknown.map((name) => `"${name}"`).join(","),
        });
      }
      return runChecks(
        request,
        type,
        checks.filter((check) => !excluded.has(check.name)),
        metrics,
        logger,
      );
    });
    for (const check of checks)
      endpoints.set(`/${type}/${check.name}`, (request) =>
        runChecks(request, type, [check], metrics, logger),
      );
  }
  return endpoints;
}

async function runChecks(
  request: HttpRequest,
  type: string,
  checks: readonly Check[],
  metrics: MemberMetrics,
  logger: Logger,
): Promise<HttpResponse> {
  if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
  let report = "";
  let failed = false;
  for (const check of checks) {
    const wrong = await check.run();
    const status = wrong === undefined ? "success" : "error";
    metrics.healthcheck.with(type, check.name).value = wrong === undefined ? 1 : 0;
    metrics.healthchecks.with(type, check.name, status).add();
    report += wrong === undefined ? `[+]${check.name} ok\n` : `[-]${check.name} failed: ${wrong}\n`;
    failed ||= wrong !== undefined;
  }
  if (failed) {
    logger.error("Health check error", { path: request.path, reason: report, "status-code": 503 });
    return plainError(503, report);
  }
  const verbose = hasQueryKey(request.query, "verbose");
  return {
    status: 200,
    headers: { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
    body: verbose ? `${report}ok\n` : "ok\n",
  };
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const ONE_KEY = { key: new Uint8Array(1), limit: 1, keysOnly: true };

/**
 * A member's report of its health. One that rebuilds its store, because it differs from the others,
 * serves no reads: it reports so as a member with the alarm CORRUPT does, also while the alarm is
 * not raised yet.
 */
export function memberHealth(member: Member): HealthSource {
  return {
    alarms() {
      const names = member.store.alarms.list().map(({ type }) => alarmName(type));
      return member.corruption.isHealing && !names.includes("CORRUPT")
        ? ["CORRUPT", ...names]
        : names;
    },
    hasLeader: () => member.leader !== 0n,
    isLearner: () => member.isLearner,
    async read({ serializable }) {
      if (member.isLearner && !serializable) throw errorOf("NotSupportedForLearner");
      // Not to wait until it is like the others, which may take many minutes.
      if (member.corruption.isHealing) throw errorOf("Corrupt");
      await member.read(MEMBER_CALLER, {
        access: { kind: "health" },
        linearizable: !serializable,
        run: () => {
          if (member.corruption.isHealing) throw errorOf("Corrupt");
          applyRange(member.store.mvcc, RangeRequest.create(ONE_KEY));
        },
      });
    },
  };
}

/** /healthz, /livez and /readyz (apiserver: pkg/server/healthz). */
import type { Call } from "../handlers/call.ts";

/** One check: undefined when it is passed, else what is wrong, for the log. */
export interface HealthCheck {
  readonly name: string;
  check(): string | undefined | Promise<string | undefined>;
}

const TEXT = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};

/**
 * Serves an endpoint and its single checks ("/readyz/etcd").
 * @param endpoint such as "readyz"
 * @param failed is called with the names of failed checks and their reasons
 */
export async function serveHealth(
  call: Call,
  endpoint: string,
  checks: readonly HealthCheck[],
  failed: (reasons: readonly string[]) => void,
): Promise<void> {
  const one = call.target.path.slice(endpoint.length + 2);
  if (one !== "") return serveOne(call, checks, one);
  const excluded = new Set(call.query.all("exclude"));
  const reasons: string[] = [];
  let report = "";
  for (const { name, check } of checks) {
    if (excluded.delete(name)) {
      report += `[+]${name} excluded: ok\n`;
      continue;
    }
    const reason = await check();
    report += reason === undefined ? `[+]${name} ok\n` : `[-]${name} failed: reason withheld\n`;
    if (reason !== undefined) reasons.push(`${name}: ${reason}`);
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).join(",");
    report += `warn: some health checks cannot be excluded: no matches for ${names}\n`;
  }
  if (reasons.length > 0) {
    failed(reasons);
    call.respond(500, TEXT, `${report}${endpoint} check failed\n`);
  } else if (call.query.has("verbose"))
    call.respond(200, TEXT, `${report}${endpoint} check passed\n`);
  else call.respond(200, TEXT, "ok");
}

async function serveOne(call: Call, checks: readonly HealthCheck[], name: string): Promise<void> {
  const found = checks.find((check) => check.name === name);
  if (found === undefined) {
    call.respond(404, TEXT, "404 page not found\n");
    return;
  }
  const reason = await found.check();
  if (reason === undefined) call.respond(200, TEXT, "ok");
  else call.respond(500, TEXT, `internal server error: ${reason}\n`);
}

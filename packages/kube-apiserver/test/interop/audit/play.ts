/** Sends the requests to a server, and reads their events from its audit log. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type ApiAccess, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";
import { auditedRequests } from "./requests.ts";

const LIMIT_MS = 20_000;

/** An event without times and what else differs between two good servers. */
export type Event = Readonly<Record<string, unknown>>;

/** For each request its events, in order. Rejects where the log does not come to an end. */
export async function eventsOf(access: ApiAccess, log: string): Promise<readonly Event[][]> {
  for (const [at, request] of auditedRequests.entries()) {
    const headers = { ...request.headers, "audit-id": `audit-${at}` };
    await exchange(access, { ...request, headers });
  }
  // A last request: its event follows those of all others.
  const headers = { authorization: "Bearer admin-token", "audit-id": "audit-end" };
  await exchange(access, { method: "GET", path: "/version", headers });
  const endMs = performance.now() + LIMIT_MS;
  let lines: readonly string[] = [];
  while (!lines.some((line) => line.includes('"audit-end"') && line.includes("ResponseComplete"))) {
    if (performance.now() > endMs) throw new Error("the events of the last request do not come");
    await delay(20);
    lines = readFileSync(log, "utf8").split("\n");
  }
  const events = lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Event);
  return auditedRequests.map((_, at) =>
    events.filter(({ auditID }) => auditID === `audit-${at}`).map(plain),
  );
}

function plain(event: Event): Event {
  const { requestReceivedTimestamp, stageTimestamp, ...rest } = event;
  for (const time of [requestReceivedTimestamp, stageTimestamp])
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(String(time)))
      throw new Error(`a time is ${time}`);
  return normalised({ status: 0, body: rest }).body as Event;
}

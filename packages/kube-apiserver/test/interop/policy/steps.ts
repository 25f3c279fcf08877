/** How the requests are written down. */
import type { ApiRequest } from "../rest/exchange.ts";

/** What a step waits for after it, so that informers of the server have seen it. */
export interface PolicyStep extends ApiRequest {
  readonly pauseMs?: number;
}

export function as(user: string, ...groups: readonly string[]): Record<string, string> {
  return {
    "impersonate-user": user,
    ...(groups.length === 0 ? {} : { "impersonate-group": groups[0] }),
  };
}

export function get(path: string, headers?: Record<string, string>): PolicyStep {
  return { method: "GET", path, headers };
}

export function post(path: string, body: unknown, headers?: Record<string, string>): PolicyStep {
  return { method: "POST", path, body, headers };
}

/**
 * Requests to single members. Each has a deadline of its own, so a silent member delays no other.
 */

import type { Invocation } from "@quorate/cli";
import type { Client } from "@quorate/client";
import type { Member, StatusResponse } from "@quorate/proto";
import { type Access, clientOf } from "../connect/globals.ts";
import { type HttpResponse, httpGet } from "./http.ts";
import { targetOf } from "./listed-member.ts";

/**
 * Requests to the member at an endpoint. Promises settle within the deadline and reject with an
 * Error that names the reason.
 */
export interface Prober {
  status(endpoint: string): Promise<StatusResponse>;
  /** The members as this member knows them; needs no quorum. */
  members(endpoint: string): Promise<readonly Member[]>;
  /** The response to GET /metrics. */
  metrics(endpoint: string): Promise<HttpResponse>;
  /** Closes the connections to endpoints that are not in `wanted`. */
  keepOnly(wanted: ReadonlySet<string>): void;
  /** Closes all connections. */
  close(): void;
}

/**
 * A prober with the TLS and user flags of a command.
 * @param timeoutMs deadline of each request
 */
export function prober(invocation: Invocation, access: Access, timeoutMs: number): Prober {
  const clients = new Map<string, Promise<Client>>();
  // One client per endpoint: a client of several would fail over to another member.
  const at = (endpoint: string): Promise<Client> => {
    let found = clients.get(endpoint);
    if (found === undefined) {
      found = clientOf(invocation, [endpoint], { timeoutMs, access }).then(({ client }) => client);
      clients.set(endpoint, found);
    }
    return found;
  };
  const end = (found: Promise<Client>): void =>
    void found.then((client) => client.close()).catch(() => {});
  return {
    status: async (endpoint) =>
      withCause(async () => (await at(endpoint)).status(endpoint), timeoutMs),
    members: async (endpoint) =>
      withCause(
        async () => (await (await at(endpoint)).memberList({ linearizable: false })).members,
        timeoutMs,
      ),
    async metrics(endpoint) {
      const target = targetOf(endpoint, access.tls);
      if (target === undefined) throw new Error(`malformed endpoint ${endpoint}`);
      return httpGet(target, "/metrics", access.tls, timeoutMs);
    },
    keepOnly(wanted) {
      for (const [endpoint, client] of clients) {
        if (wanted.has(endpoint)) continue;
        clients.delete(endpoint);
        end(client);
      }
    },
    close() {
      for (const client of clients.values()) end(client);
      clients.clear();
    },
  };
}

/**
 * Rejects with the cause of a timeout instead of the timeout; without a cause, with the silent
 * time.
 */
async function withCause<T>(request: () => Promise<T>, timeoutMs: number): Promise<T> {
  try {
    return await request();
  } catch (error) {
    const reason =
      error instanceof Error && error.cause instanceof Error
        ? error.cause.message
        : (error as Error).message;
    const isSilence = /deadline exceeded|no response in time|no connection/i.test(reason);
    throw new Error(
      isSilence
        ? `no response within ${timeoutMs >= 1000 ? `${timeoutMs / 1000} s` : `${timeoutMs} ms`}`
        : reason,
    );
  }
}

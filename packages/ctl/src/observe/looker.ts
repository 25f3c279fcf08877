/**
 * Asks single members of a cluster. Every question has a deadline of its own, so one member that is
 * silent holds up nothing else.
 */
import type { Client } from "@quorate/client";
import type { Member, StatusResponse } from "@quorate/proto";
import { type Access, clientOf } from "../globals.ts";
import type { Invocation } from "../program.ts";
import { type HttpAnswer, httpGet } from "./http.ts";
import { targetOf } from "./places.ts";

/**
 * What can be asked of the member at an endpoint. Promises settle within the looker's deadline and
 * reject with an Error that says why.
 */
export interface Looker {
  status(endpoint: string): Promise<StatusResponse>;
  /** The members as this member knows them, with or without a quorum. */
  members(endpoint: string): Promise<readonly Member[]>;
  /** The answer to GET /metrics. */
  metrics(endpoint: string): Promise<HttpAnswer>;
  /** Ends the connections to endpoints that are not in `wanted`. */
  keepOnly(wanted: ReadonlySet<string>): void;
  /** Ends all connections. */
  close(): void;
}

/**
 * A looker with the TLS and user flags of a command.
 * @param timeoutMs the deadline of each question
 */
export function looker(invocation: Invocation, access: Access, timeoutMs: number): Looker {
  const clients = new Map<string, Promise<Client>>();
  // A client of its own for each endpoint: a client of several would ask the next one where the
  // first does not answer.
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
      inWords(async () => (await at(endpoint)).status(endpoint), timeoutMs),
    members: async (endpoint) =>
      inWords(
        async () => (await (await at(endpoint)).memberList({ linearizable: false })).members,
        timeoutMs,
      ),
    async metrics(endpoint) {
      const target = targetOf(endpoint, access.tls);
      if (target === undefined) throw new Error(`${endpoint} is no endpoint`);
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
 * Rejects with what happened last instead of the deadline around it; where nothing happened, with
 * how long nothing did.
 */
async function inWords<T>(question: () => Promise<T>, timeoutMs: number): Promise<T> {
  try {
    return await question();
  } catch (error) {
    const said =
      error instanceof Error && error.cause instanceof Error
        ? error.cause.message
        : (error as Error).message;
    const isSilence = /deadline exceeded|no answer in time|no connection/i.test(said);
    throw new Error(
      isSilence
        ? `no answer within ${timeoutMs >= 1000 ? `${timeoutMs / 1000} s` : `${timeoutMs} ms`}`
        : said,
    );
  }
}

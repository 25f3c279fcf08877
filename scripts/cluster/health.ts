/** Asks a member whether it can serve, by GET /health. */
import { tlsContext } from "@quorate/host";
import { Agent, request } from "undici";

/**
 * How to reach members: PEM texts of the authority and of a client's certificate and key; all
 * undefined for plain HTTP.
 */
export interface ClientIdentity {
  readonly ca?: string | undefined;
  readonly cert?: string;
  readonly key?: string;
}

/** A prober that keeps its connections; close it at the end. */
export interface HealthProbe {
  /**
   * Undefined if the member at `url` says that it is healthy, or why it does not (within
   * `timeoutMs`).
   */
  trouble(url: string, timeoutMs?: number): Promise<string | undefined>;
  close(): Promise<void>;
}

/** A prober that calls with the given identity. */
export function createHealthProbe(identity: ClientIdentity): HealthProbe {
  const agent = new Agent({
    connect: tlsContext({ trusted: identity.ca, cert: identity.cert, key: identity.key }),
  });
  return {
    async trouble(url, timeoutMs = 2000) {
      try {
        const answer = await request(`${url}/health`, {
          dispatcher: agent,
          signal: AbortSignal.timeout(timeoutMs),
        });
        const text = await answer.body.text();
        if (answer.statusCode === 200 && /"health":\s*"?true/.test(text)) return undefined;
        return `answers ${answer.statusCode} ${text.trim()}`;
      } catch (error) {
        return (error as Error).message || String(error);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Connections of requests over HTTP/1.1 that are kept for further ones. */
import { Agent as TlsAgent } from "node:https";
import { Http1Agent } from "@quorate/host/node";

/** Connections that are kept for further requests, each to its peer. */
export class KeptConnections {
  readonly plain: InstanceType<typeof Http1Agent>;
  readonly tls: TlsAgent;

  /** @param maxSockets to one peer at a time; more requests wait */
  constructor(maxSockets: number, idleTimeoutMs: number) {
    const options = { keepAlive: true, maxSockets, timeout: idleTimeoutMs };
    this.plain = new Http1Agent(options);
    this.tls = new TlsAgent({ ...options, maxCachedSessions: 0 });
  }

  /** Closes them; requests that are under way fail. */
  close(): void {
    this.plain.destroy();
    this.tls.destroy();
  }
}

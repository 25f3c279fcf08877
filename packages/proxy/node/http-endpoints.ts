/** The plain HTTP side of the proxy: health, its metrics, and those of a member. */

import { request as httpsRequest } from "node:https";
import type { ConnectionOptions } from "node:tls";
import type { HttpHandler, HttpResponse } from "@quorate/host";
import { plainError } from "@quorate/host";
import { requestHttp1 } from "@quorate/host/node";

const TIMEOUT_MS = 10_000;
/** A longer page of a member is not passed on. */
const MAX_METRICS_BYTES = 64 * 1024 * 1024;
const FAILED = plainError(500, "Internal server error");

/** A member's page. */
export interface MemberPage {
  /** A URL of http or https. */
  readonly url: string;
  /** For HTTP/1.1. */
  readonly tls: ConnectionOptions;
}

/** /metrics: those of the member in use (etcd: of one endpoint). */
export function memberMetrics(page: () => MemberPage): HttpHandler {
  return async () => {
    try {
      const body = await fetchPage(page());
      return { status: 200, headers: { "content-type": "text/plain; version=0.0.4" }, body };
    } catch {
      return FAILED;
    }
  };
}

function fetchPage({ url, tls }: MemberPage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const options = { timeout: TIMEOUT_MS, agent: false as const };
    const request = url.startsWith("https:")
      ? httpsRequest(url, { ...tls, ...options })
      : requestHttp1(url, options);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      let sizeBytes = 0;
      response.on("data", (chunk: Buffer) => {
        sizeBytes += chunk.length;
        if (sizeBytes > MAX_METRICS_BYTES) request.destroy(new Error("the page is too long"));
        else chunks.push(chunk);
      });
      response.on("end", () => resolve(Buffer.concat(chunks)));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("timeout")));
    request.on("error", reject);
    request.end();
  });
}

/** The endpoint of each path; others get Go's 404. */
export function routes(endpoints: ReadonlyMap<string, HttpHandler>): HttpHandler {
  const notFound: HttpResponse = plainError(404, "404 page not found");
  return (request) => endpoints.get(request.path)?.(request) ?? notFound;
}

/** Heads of requests. */
import type { HttpHead } from "@quorate/host";

export function headOf(headers: Record<string, string>, more: Partial<HttpHead> = {}): HttpHead {
  return {
    method: "GET",
    path: "/api",
    query: "",
    headers: new Map(Object.entries(headers)),
    peerAddress: "127.0.0.1",
    peerCommonName: undefined,
    ...more,
  };
}

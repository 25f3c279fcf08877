/** /health and /proxy/health (etcd: server/proxy/grpcproxy/health.go). */

import type { HttpHandler } from "@quorate/host";
import { plainError } from "@quorate/host";
import {
  fromUtf8,
  GrpcCode,
  KVService,
  RangeRequest,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import type { StatusError } from "@quorate/rpc";
import type { Upstream } from "../upstream/upstream.ts";
import type { UpstreamStream } from "../upstream/upstream-stream.ts";

const RANGE = { path: KVService.methods.Range.path, isRepeatable: true };
const READ_TIMEOUT_MS = 1000;
const WATCH_TIMEOUT_MS = 3000;
const KEY = fromUtf8("a");

/** Why something is not healthy; undefined if it is. */
export type HealthCheck = () => Promise<string | undefined>;

/** A response for the outcome of a check. */
export function healthHandler(check: HealthCheck): HttpHandler {
  return async (request) => {
    if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const reason = await check();
    if (reason !== undefined) return plainError(503, JSON.stringify({ health: "false", reason }));
    return {
      status: 200,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: '{"health":"true","reason":""}',
    };
  };
}

/** The cluster: a linearizable read of one key. That it is refused shows that the cluster works. */
export function clusterHealth(upstream: Upstream): HealthCheck {
  return async () => {
    const deadlineMs = upstream.clock.monotonicMs() + READ_TIMEOUT_MS;
    try {
      const request = RangeRequest.encode({ key: KEY });
      await withTimeout(upstream, deadlineMs, RANGE, request);
      return undefined;
    } catch (error) {
      const { code, message } = error as StatusError;
      const isRefusal =
        code === GrpcCode.PermissionDenied || message === "etcdserver: permission denied";
      return isRefusal ? undefined : `GET ERROR:${message}`;
    }
  };
}

/**
 * The proxy as its clients reach it: a read and a watch through its own address.
 * @param self the way to --advertise-client-url; undefined without one
 */
export function proxyHealth(self: Upstream | undefined): HealthCheck {
  if (self === undefined) return async () => "no connection to proxy";
  const read = clusterHealth(self);
  return async () => (await read()) ?? (await watchOnce(self));
}

/** A call that ends at its deadline also when the server does not. */
function withTimeout(
  upstream: Upstream,
  deadlineMs: number,
  rules: typeof RANGE,
  request: Uint8Array,
): Promise<Uint8Array> {
  let giveUp: () => void = () => {};
  const delayMs = Math.max(0, deadlineMs - upstream.clock.monotonicMs());
  const timer = upstream.clock.after(delayMs, () => giveUp());
  const onCancel = (listener: () => void): void => {
    giveUp = listener;
  };
  return upstream
    .call(rules, request, { metadata: [], deadlineMs, onCancel })
    .catch((error: StatusError) => {
      if (error.code !== GrpcCode.Canceled) throw error;
      throw Object.assign(error, { message: "context deadline exceeded" });
    })
    .finally(() => timer.cancel());
}

/** Whether a watch is created in time. */
function watchOnce(upstream: Upstream): Promise<string | undefined> {
  return new Promise((resolve) => {
    let stream: UpstreamStream | undefined;
    const end = (reason: string | undefined): void => {
      timer.cancel();
      stream?.cancel();
      resolve(reason);
    };
    const timer = upstream.clock.after(WATCH_TIMEOUT_MS, () => end("WATCH TIMEOUT"));
    stream = upstream.stream(WatchService.methods.Watch.path, [], {
      message: () => end(undefined),
      ended: () => end("WATCH TIMEOUT"),
    });
    const create = WatchCreateRequest.create({ key: KEY });
    stream.send(WatchRequest.encode({ requestUnion: { case: "createRequest", value: create } }));
  });
}

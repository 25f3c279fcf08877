/** The proxy's metrics, under etcd's names (etcd: server/proxy/grpcproxy/metrics.go). */

import { type Counter, type Gauge, MetricRegistry } from "@quorate/metrics";
import { GrpcCode, services } from "@quorate/proto";
import type { RpcObserver } from "@quorate/rpc";

export class ProxyMetrics {
  readonly registry = new MetricRegistry();
  /** Events that were sent to a watch without having been received for it. */
  readonly eventsCoalescing: Counter;
  readonly cacheHits: Gauge;
  readonly cacheMisses: Gauge;
  /** Times that watches of a client which does not read were parted from those of others. */
  readonly slowWatches: Counter;
  /** Requests for leases that shared another's request upstream. */
  readonly keepAlivesCoalesced: Counter;

  constructor() {
    const { registry } = this;
    this.eventsCoalescing = registry.counter(
      "etcd_grpc_proxy_events_coalescing_total",
      "Total number of events coalescing",
    );
    this.cacheHits = registry.gauge(
      "etcd_grpc_proxy_cache_hits_total",
      "Total number of cache hits",
    );
    this.cacheMisses = registry.gauge(
      "etcd_grpc_proxy_cache_misses_total",
      "Total number of cache misses",
    );
    this.slowWatches = registry.counter(
      "quorate_grpc_proxy_slow_watches_total",
      "Times that a watch of a client that does not read was parted from the others",
    );
    this.keepAlivesCoalesced = registry.counter(
      "quorate_grpc_proxy_keepalives_coalesced_total",
      "Lease keep-alive requests that shared the request of another client",
    );
  }

  /** Declares the number of cached responses. */
  cachedKeys(read: () => number): void {
    this.registry.gauge(
      "etcd_grpc_proxy_cache_keys_total",
      "Total number of keys/ranges cached",
      read,
    );
  }

  /** Declares the number of watches that share another's watch upstream. */
  coalescedWatches(read: () => number): void {
    this.registry.gauge(
      "etcd_grpc_proxy_watchers_coalescing_total",
      "Total number of current watchers coalescing",
      read,
    );
  }

  /** Counts calls under the names of grpc-ecosystem's Go metrics, as etcd's proxy does. */
  observer(): RpcObserver {
    const labels = ["grpc_type", "grpc_service", "grpc_method"];
    const { registry } = this;
    const started = registry.counters(
      "grpc_server_started_total",
      "Total number of RPCs started on the server.",
      labels,
    );
    const handled = registry.counters(
      "grpc_server_handled_total",
      "Total number of RPCs completed on the server, regardless of success or failure.",
      [...labels, "grpc_code"],
    );
    const received = registry.counters(
      "grpc_server_msg_received_total",
      "Total number of RPC stream messages received on the server.",
      labels,
    );
    const sent = registry.counters(
      "grpc_server_msg_sent_total",
      "Total number of gRPC stream messages sent by the server.",
      labels,
    );
    const codes = Object.keys(GrpcCode);
    const methods = new Map(
      services.flatMap((service) =>
        Object.values(service.methods).map((method) => {
          const of = [typeOf(method), service.typeName, method.name];
          const counters = {
            started: started.with(...of),
            received: received.with(...of),
            sent: sent.with(...of),
            byCode: codes.map((code) => handled.with(...of, code)),
          };
          return [method.path, counters] as const;
        }),
      ),
    );
    return {
      started: (path) => methods.get(path)?.started.add(),
      handled: (path, code) => {
        const method = methods.get(path);
        (method?.byCode[code] ?? method?.byCode[GrpcCode.Unknown])?.add();
      },
      messageReceived: (path) => methods.get(path)?.received.add(),
      messageSent: (path) => methods.get(path)?.sent.add(),
    };
  }
}

function typeOf(method: {
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}): string {
  if (method.requestStream) return method.responseStream ? "bidi_stream" : "client_stream";
  return method.responseStream ? "server_stream" : "unary";
}

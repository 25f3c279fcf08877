/** Counts calls under the names of grpc-ecosystem's Go metrics, which etcd's dashboards use. */
import type { Clock } from "@quorate/host";
import { GrpcStatus, services } from "@quorate/proto";
import type { RpcObserver } from "@quorate/rpc";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { Counter, Histogram } from "../metrics/registry.ts";

/** "DEADLINE_EXCEEDED" as Go's names have it, "DeadlineExceeded". */
const CODE_NAMES: readonly string[] = Object.keys(GrpcStatus).map((name) =>
  name === "OK"
    ? "OK"
    : name
        .toLowerCase()
        .split("_")
        .map((word) => word[0]!.toUpperCase() + word.slice(1))
        .join(""),
);

/** The counters of one method; all there from the start, so that a rate can be taken of the first call. */
interface MethodCounters {
  readonly labels: readonly [type: string, service: string, method: string];
  readonly started: Counter;
  readonly received: Counter;
  readonly sent: Counter;
  readonly handledByCode: (Counter | undefined)[];
  readonly handling: Histogram | undefined;
}

export function rpcObserver(metrics: MemberMetrics, clock: Clock): RpcObserver {
  const methods = new Map<string, MethodCounters>();
  for (const service of services) {
    for (const method of Object.values(service.methods)) {
      const type = method.requestStream
        ? method.responseStream
          ? "bidi_stream"
          : "client_stream"
        : method.responseStream
          ? "server_stream"
          : "unary";
      const labels = [type, service.typeName, method.name] as const;
      methods.set(method.path, {
        labels,
        started: metrics.grpcStarted.with(...labels),
        received: metrics.grpcMessagesReceived.with(...labels),
        sent: metrics.grpcMessagesSent.with(...labels),
        handledByCode: [],
        handling: metrics.grpcHandling?.with(...labels),
      });
    }
  }
  return {
    started: (path) => methods.get(path)?.started.add(),
    handled: (path, code, startedMs) => {
      const method = methods.get(path);
      if (method === undefined) return;
      let counter = method.handledByCode[code];
      if (counter === undefined) {
        counter = metrics.grpcHandled.with(...method.labels, CODE_NAMES[code] ?? `Code(${code})`);
        method.handledByCode[code] = counter;
      }
      counter.add();
      method.handling?.observe((clock.monotonicMs() - startedMs) / 1000);
    },
    messageReceived: (path, sizeBytes) => {
      metrics.clientReceivedBytes.add(sizeBytes);
      methods.get(path)?.received.add();
    },
    messageSent: (path, sizeBytes) => {
      metrics.clientSentBytes.add(sizeBytes);
      methods.get(path)?.sent.add();
    },
  };
}

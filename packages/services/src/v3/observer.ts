/**
 * Observes calls: counts them under the names of grpc-ecosystem's Go metrics, which etcd's
 * dashboards use, and logs those that take long.
 */
import { type Clock, formatDurationMs, type Logger } from "@quorate/host";
import type { MemberMetrics } from "@quorate/member";
import type { Counter, Histogram } from "@quorate/metrics";
import { GrpcCode, KVService, services } from "@quorate/proto";
import type { RpcObserver } from "@quorate/rpc";

/** Go's names of the codes, by code. */
const CODE_NAMES: readonly string[] = Object.keys(GrpcCode);

const RANGE = KVService.methods.Range.path;
/** What is asked of the health service is counted beside etcd's services. */
const HEALTH_SERVICE = "grpc.health.v1.Health";

interface Streams {
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

function typeOf({ requestStream, responseStream }: Streams): string {
  if (requestStream) return responseStream ? "bidi_stream" : "client_stream";
  return responseStream ? "server_stream" : "unary";
}

/**
 * The counters of one method: all there from the start, one for each code too, so that a rate sees
 * the first call and the first error.
 */
interface MethodCounters {
  readonly isUnary: boolean;
  readonly started: Counter;
  readonly received: Counter;
  readonly sent: Counter;
  readonly handledByCode: readonly Counter[];
  readonly handling: Histogram | undefined;
}

function countersOf(
  metrics: MemberMetrics,
  ...labels: readonly [type: string, service: string, method: string]
): MethodCounters {
  return {
    isUnary: labels[0] === "unary",
    started: metrics.grpcStarted.with(...labels),
    received: metrics.grpcMessagesReceived.with(...labels),
    sent: metrics.grpcMessagesSent.with(...labels),
    handledByCode: CODE_NAMES.map((code) => metrics.grpcHandled.with(...labels, code)),
    handling: metrics.grpcHandling?.with(...labels),
  };
}

/**
 * Counts the calls of one member; times are of `clock`. `slow` is called with those that took long.
 */
export function rpcObserver(metrics: MemberMetrics, clock: Clock, slow?: SlowCalls): RpcObserver {
  const methods = new Map<string, MethodCounters>();
  for (const service of services) {
    for (const method of Object.values(service.methods)) {
      methods.set(method.path, countersOf(metrics, typeOf(method), service.typeName, method.name));
    }
  }
  methods.set(`/${HEALTH_SERVICE}/Check`, countersOf(metrics, "unary", HEALTH_SERVICE, "Check"));
  methods.set(
    `/${HEALTH_SERVICE}/Watch`,
    countersOf(metrics, "server_stream", HEALTH_SERVICE, "Watch"),
  );
  // Calls of one method follow each other often.
  let lastPath: string | undefined;
  let last: MethodCounters | undefined;
  const of = (path: string): MethodCounters | undefined => {
    if (path !== lastPath) {
      last = methods.get(path);
      lastPath = path;
    }
    return last;
  };
  const rangeSucceeded = metrics.requestDuration.with("Range", "true");
  const rangeFailed = metrics.requestDuration.with("Range", "false");
  return {
    started: (path) => of(path)?.started.add(),
    handled: (path, code, startedMs) => {
      const method = of(path);
      if (method === undefined) return;
      // A code beyond those that gRPC has is what gRPC makes of it.
      (method.handledByCode[code] ?? method.handledByCode[GrpcCode.Unknown])?.add();
      const nowMs = clock.monotonicMs();
      if (method.isUnary) slow?.ended(path, CODE_NAMES[code] ?? "Unknown", startedMs, nowMs);
      const isRange = path === RANGE;
      if (method.handling === undefined && !isRange) return;
      const seconds = (nowMs - startedMs) / 1000;
      method.handling?.observe(seconds);
      // What writes is measured where its result comes in.
      if (isRange) (code === GrpcCode.OK ? rangeSucceeded : rangeFailed).observe(seconds);
    },
    messageReceived: (path, sizeBytes) => {
      metrics.clientReceivedBytes.add(sizeBytes);
      of(path)?.received.add();
    },
    messageSent: (path, sizeBytes) => {
      metrics.clientSentBytes.add(sizeBytes);
      of(path)?.sent.add();
    },
  };
}

/**
 * Lines in one second; an overloaded member must not be slowed down further by a line for each
 * call. What is left out is counted.
 */
const MAX_LINES_A_SECOND = 10;

/** Calls with one answer that take long are logged, as etcd logs them: "request stats". */
export class SlowCalls {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #leftOut = 0;

  /** @param limitMs calls that take longer are logged. */
  constructor(limitMs: number, clock: Clock, logger: Logger) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** A call has ended now. The times are of the clock's monotonic time. */
  ended(path: string, code: string, startedMs: number, nowMs: number): void {
    const tookMs = nowMs - startedMs;
    if (tookMs <= this.#limitMs) return;
    if (nowMs - this.#windowStartMs >= 1000) {
      this.#windowStartMs = nowMs;
      this.#lines = 0;
    }
    if (this.#lines === MAX_LINES_A_SECOND) {
      this.#leftOut++;
      return;
    }
    this.#lines++;
    this.#logger.warn("request stats", {
      "start time": new Date(this.#clock.wallMs() - tookMs).toISOString(),
      "time spent": formatDurationMs(tookMs),
      "expected-duration": formatDurationMs(this.#limitMs),
      "response type": path,
      code,
      ...(this.#leftOut === 0 ? {} : { "left-out": this.#leftOut }),
    });
    this.#leftOut = 0;
  }
}

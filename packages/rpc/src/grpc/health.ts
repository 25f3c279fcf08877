/**
 * The health service (grpc/grpc, doc/health-checking.md): load balancers and probes check or watch
 * the state of each service.
 */
import { GrpcCode, toUtf8 } from "@quorate/proto";
import {
  type ServiceTable,
  type Status,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type UnaryHandler,
} from "../service.ts";
import { readRequest, writeFields } from "./wire.ts";

/** HealthCheckResponse.ServingStatus. */
const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

const CLOSED: Status = { code: GrpcCode.Unavailable, message: "the server is shutting down" };

export class HealthService {
  /** Whether each service is serving; "" is the whole server. */
  readonly #serving = new Map<string, boolean>();
  readonly #watchers = new Map<string, Set<StreamCall>>();

  /** The service's methods, for a ServiceTable. */
  readonly methods: ServiceTable = {
    unary: new Map<string, UnaryHandler>([
      ["/grpc.health.v1.Health/Check", (request) => this.#check(serviceOf(request))],
    ]),
    stream: new Map<string, StreamHandler>([
      ["/grpc.health.v1.Health/Watch", (call) => this.#watch(call)],
    ]),
  };

  /** Sets whether a service is serving, and notifies its watchers. */
  set(service: string, serving: boolean): void {
    if (this.#serving.get(service) === serving) return;
    this.#serving.set(service, serving);
    const response = this.#status(service);
    for (const call of this.#watchers.get(service) ?? []) call.send(response);
  }

  /** Marks all services as not serving: notifies watchers and ends their calls. */
  close(): void {
    for (const service of this.#serving.keys()) this.set(service, false);
    for (const call of [...this.#watchers.values()].flatMap((watchers) => [...watchers]))
      call.end(CLOSED);
    this.#watchers.clear();
  }

  #status(service: string): Uint8Array {
    const serving = this.#serving.get(service);
    return writeFields([
      [1, serving === undefined ? SERVICE_UNKNOWN : serving ? SERVING : NOT_SERVING],
    ]);
  }

  #check(service: string): Uint8Array {
    if (!this.#serving.has(service)) throw new StatusError(GrpcCode.NotFound, "unknown service");
    return this.#status(service);
  }

  #watch(call: StreamCall): ReturnType<StreamHandler> {
    let service: string | undefined;
    const leave = (): void => {
      const watchers = service === undefined ? undefined : this.#watchers.get(service);
      if (service === undefined || !watchers?.delete(call) || watchers.size > 0) return;
      this.#watchers.delete(service);
    };
    return {
      message: (request) => {
        if (service !== undefined)
          throw new StatusError(
            GrpcCode.Internal,
            "more than one message in a call that takes one",
          );
        service = serviceOf(request);
        const watchers = this.#watchers.get(service) ?? new Set();
        this.#watchers.set(service, watchers.add(call));
        call.send(this.#status(service));
      },
      cancelled: leave,
    };
  }
}

/** The only field of HealthCheckRequest. */
function serviceOf(request: Uint8Array): string {
  const bytes = readRequest(request, "HealthCheckRequest").findLast(
    (one) => one.field === 1,
  )?.bytes;
  return bytes === undefined ? "" : toUtf8(bytes);
}

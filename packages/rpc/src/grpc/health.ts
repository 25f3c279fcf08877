/**
 * The health service (grpc/grpc, doc/health-checking.md): load balancers and probes ask it, or
 * watch it, for the state of each service.
 */
import { toUtf8 } from "@quorate/proto";
import { GrpcCode } from "../codes.ts";
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
  /** Whether each service serves; "" stands for the whole server. */
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

  /** Says whether a service serves, to those who ask and to those who watch it. */
  set(service: string, serving: boolean): void {
    if (this.#serving.get(service) === serving) return;
    this.#serving.set(service, serving);
    const answer = this.#answer(service);
    for (const call of this.#watchers.get(service) ?? []) call.send(answer);
  }

  /** Nothing serves any more: those who watch are told so, and their calls end. */
  close(): void {
    for (const service of this.#serving.keys()) this.set(service, false);
    for (const call of [...this.#watchers.values()].flatMap((watchers) => [...watchers]))
      call.end(CLOSED);
    this.#watchers.clear();
  }

  #answer(service: string): Uint8Array {
    const serving = this.#serving.get(service);
    return writeFields([
      [1, serving === undefined ? SERVICE_UNKNOWN : serving ? SERVING : NOT_SERVING],
    ]);
  }

  #check(service: string): Uint8Array {
    if (!this.#serving.has(service)) throw new StatusError(GrpcCode.NotFound, "unknown service");
    return this.#answer(service);
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
        call.send(this.#answer(service));
      },
      cancelled: leave,
    };
  }
}

/** HealthCheckRequest's only field. */
function serviceOf(request: Uint8Array): string {
  const bytes = readRequest(request, "HealthCheckRequest").findLast(
    (one) => one.field === 1,
  )?.bytes;
  return bytes === undefined ? "" : toUtf8(bytes);
}

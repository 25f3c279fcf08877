/**
 * The services that every gRPC server may have, beside etcd's: health (grpc.health.v1), and
 * reflection, by which tools such as grpcurl learn the others.
 */
import { defined, fileDescriptors } from "@quorate/proto";
import {
  HealthService,
  ReflectionService,
  type ServiceTable,
  type StreamHandler,
} from "@quorate/rpc";

/** The server as a whole. */
const ALL_SERVICES = "";

export interface StandardServices {
  /** The table with these services added. */
  readonly services: ServiceTable;
  readonly health: HealthService;
}

/** Adds health, serving from the start as in etcd, and reflection to a member's services. */
export function withStandardServices(table: ServiceTable): StandardServices {
  const health = new HealthService();
  health.set(ALL_SERVICES, true);
  const unary = new Map([...table.unary, ...health.methods.unary]);
  const stream = new Map([...table.stream, ...health.methods.stream]);
  // Most members are never asked: the descriptors are read at the first question.
  let reflection: ReflectionService | undefined;
  for (const version of ["v1", "v1alpha"]) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    const handler: StreamHandler = (call) => {
      reflection ??= new ReflectionService(
        fileDescriptors(),
        servicesOf([...unary.keys(), ...stream.keys()]),
      );
      return defined(reflection.methods.stream.get(path), path)(call);
    };
    stream.set(path, handler);
  }
  return { services: { unary, stream }, health };
}

/** The names of the services that the paths are of. */
function servicesOf(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => path.slice(1, path.lastIndexOf("/"))))];
}

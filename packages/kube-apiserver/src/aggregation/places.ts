/**
 * Where the service of an APIService is (apiserver: pkg/util/proxy/proxy.go):
 *
 *     named by --webhook-service    that address
 *     ExternalName                  that host
 *     with ready endpoints          one of them: there may be nothing that forwards to the service
 *     else                          its cluster address, but with --enable-aggregator-routing
 */
import type { Random } from "@quorate/host";
import { splitHostPort } from "@quorate/host";
import type { KubeObject } from "@quorate/kube-storage";
import type { ApiServiceSpec } from "../builtin/api-services.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface ServicePort {
  readonly name?: string;
  readonly port?: number;
}

export interface ServiceSpec {
  readonly type?: string;
  readonly clusterIP?: string;
  readonly externalName?: string;
  readonly ipFamilies?: readonly string[];
  readonly ports?: readonly ServicePort[];
}

interface Endpoint {
  readonly addresses?: readonly string[];
  readonly conditions?: { readonly ready?: boolean };
}

export interface PlaceOptions {
  /** --enable-aggregator-routing */
  readonly usesEndpoints: boolean;
  /** Where services are, by "name.namespace" or "name.namespace:port". */
  readonly services: ReadonlyMap<string, string>;
}

/** Services and EndpointSlices as they are now. */
export interface ServiceObjects {
  service(namespace: string, name: string): KubeObject | undefined;
  /** Of the service with that name. */
  endpointSlices(namespace: string, name: string): readonly KubeObject[];
}

export function serviceSpecOf(service: KubeObject): ServiceSpec {
  return (service["spec"] ?? {}) as ServiceSpec;
}

/** The address that an option has for the service. */
export function namedPlace(
  { name, namespace, port }: NonNullable<ApiServiceSpec["service"]>,
  { services }: PlaceOptions,
): Address | undefined {
  const key = `${name}.${namespace}`;
  return splitHostPort(services.get(`${key}:${port}`) ?? services.get(key) ?? "");
}

/** Throws Error with the reason where there is no place. */
export function placeOf(
  service: NonNullable<ApiServiceSpec["service"]>,
  objects: ServiceObjects,
  options: PlaceOptions,
  random: Random,
): Address {
  const named = namedPlace(service, options);
  if (named !== undefined) return named;
  const { namespace, name, port } = service;
  const object = objects.service(namespace, name);
  if (object === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
  const spec = serviceSpecOf(object);
  const { type = "ClusterIP", clusterIP = "", externalName = "" } = spec;
  if (type === "ExternalName" && !options.usesEndpoints) return { host: externalName, port };
  if (!["ClusterIP", "NodePort", "LoadBalancer"].includes(type))
    throw new Error(`unsupported service type ${JSON.stringify(type)}`);
  if (!options.usesEndpoints && clusterIP === "None")
    throw new Error('cannot route to service with ClusterIP "None"');
  const portName = portNameOf(spec, port);
  if (portName === undefined)
    throw new Error(`no service port ${port} found for service ${JSON.stringify(name)}`);
  const found = readyEndpoints(objects.endpointSlices(namespace, name), portName, spec);
  const chosen = found[random.below(Math.max(1, found.length))];
  if (chosen !== undefined) return chosen;
  if (!options.usesEndpoints && clusterIP !== "") return { host: clusterIP, port };
  throw new Error(`no endpoints available for service ${JSON.stringify(name)}`);
}

/** The name of a port, "" for one without; undefined where there is no such port. */
export function portNameOf({ ports = [] }: ServiceSpec, port: number): string | undefined {
  const found = ports.find((one) => one.port === port);
  return found && (found.name ?? "");
}

/** The addresses of ready endpoints; those of the service's first family where it has some. */
export function readyEndpoints(
  slices: readonly KubeObject[],
  portName: string,
  { ipFamilies = [] }: ServiceSpec = {},
): Address[] {
  const all = slices.flatMap((slice) => {
    const ports = (slice["ports"] ?? []) as readonly ServicePort[];
    const endpoints = (slice["endpoints"] ?? []) as readonly Endpoint[];
    const { port } = ports.find(({ name = "" }) => name === portName) ?? {};
    if (port === undefined) return [];
    return endpoints
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses: [host] = [] }) =>
        host === undefined ? [] : [{ family: slice["addressType"], host, port }],
      );
  });
  const first = all.filter(({ family }) => family === ipFamilies[0]);
  return (first.length > 0 ? first : all).map(({ host, port }) => ({ host, port }));
}

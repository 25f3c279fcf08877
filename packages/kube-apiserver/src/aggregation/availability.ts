/**
 * Whether the server of an APIService is there (kube-aggregator: pkg/controllers/status/remote):
 * its Service, a port, ready endpoints, and a response to a request for discovery.
 */
import { type Clock, joinHostPort, type Random } from "@quorate/host";
import { type KubeObject, metaTime } from "@quorate/kube-storage";
import { CodedError, defined, toUtf8, writeFromBase64 } from "@quorate/proto";
import type { ApiServiceSpec, AvailableCondition } from "../builtin/api-services.ts";
import type { BackendPlace, Backends } from "./backends.ts";
import {
  type Address,
  namedPlace,
  type PlaceOptions,
  placeOf,
  portNameOf,
  readyEndpoints,
  type ServiceObjects,
  serviceSpecOf,
} from "./places.ts";
import { identityHeaders } from "./request-headers.ts";
import { wholeResponse } from "./whole-response.ts";

/** Requests of one check, at once: one that succeeds is enough. */
const ATTEMPTS = 5;
const TIMEOUT_MS = 5000;

/** Who asks: allowed to everything by servers that trust this one. */
export const AGGREGATOR = identityHeaders({
  name: "system:kube-aggregator",
  uid: "",
  groups: ["system:masters"],
  extra: {},
});

export interface AvailabilityDeps {
  readonly backends: Backends;
  readonly clock: Clock;
  readonly random: Random;
  readonly objects: ServiceObjects;
  readonly options: PlaceOptions;
}

type Problem = Pick<AvailableCondition, "status" | "reason" | "message">;

/** The place with what proves it. */
export function backendPlace(
  { caBundle = "", insecureSkipTLSVerify = false, service }: ApiServiceSpec,
  address: Address,
): BackendPlace {
  const { name, namespace } = defined(service, "the service");
  return {
    ...address,
    serverName: `${name}.${namespace}.svc`,
    caPem: caBundle === "" ? undefined : pemOf(caBundle),
    isInsecure: insecureSkipTLSVerify,
  };
}

/** The caBundle of an APIService holds no certificate. */
export class BadCaBundle extends CodedError<"BadCaBundle"> {
  constructor() {
    const why = "unable to load root certificates: unable to parse bytes as PEM block";
    super("BadCaBundle", "BadCaBundle", why);
  }
}

function pemOf(base64: string): string {
  const space = new Uint8Array(base64.length);
  const pem = toUtf8(space.subarray(0, writeFromBase64(space, base64, 0)));
  if (pem.includes("-----BEGIN CERTIFICATE-----")) return pem;
  throw new BadCaBundle();
}

/** Resolves with the condition as of now. Rejects with BadCaBundle. */
export async function checkedAvailability(
  spec: ApiServiceSpec,
  deps: AvailabilityDeps,
): Promise<AvailableCondition> {
  const problem = serviceProblem(spec, deps) ?? (await discoveryProblem(spec, deps));
  return {
    type: "Available",
    lastTransitionTime: metaTime(deps.clock.wallMs()),
    ...(problem ?? { status: "True", reason: "Passed", message: "all checks passed" }),
  };
}

function serviceProblem(
  spec: ApiServiceSpec,
  { objects, options }: AvailabilityDeps,
): Problem | undefined {
  const service = defined(spec.service, "the service");
  if (namedPlace(service, options) !== undefined) return undefined;
  const { namespace, name, port } = service;
  const what = `service/${name} in ${JSON.stringify(namespace)}`;
  const because = (reason: string, message: string): Problem => ({
    status: "False",
    reason,
    message,
  });
  const object = objects.service(namespace, name);
  if (object === undefined) return because("ServiceNotFound", `${what} is not present`);
  const serviceSpec = serviceSpecOf(object);
  if ((serviceSpec.type ?? "ClusterIP") !== "ClusterIP") return undefined;
  const portName = portNameOf(serviceSpec, port);
  if (portName === undefined)
    return because("ServicePortError", `${what} is not listening on port ${port}`);
  const slices: readonly KubeObject[] = objects.endpointSlices(namespace, name);
  if (slices.length === 0)
    return because("EndpointsNotFound", `cannot find endpointslices for ${what}`);
  if (readyEndpoints(slices, portName).length > 0) return undefined;
  const why = `have no addresses with port name ${JSON.stringify(portName)}`;
  return because("MissingEndpoints", `endpointslices for ${what} ${why}`);
}

async function discoveryProblem(
  spec: ApiServiceSpec,
  deps: AvailabilityDeps,
): Promise<Problem | undefined> {
  try {
    await Promise.any(Array.from({ length: ATTEMPTS }, () => discovered(spec, deps)));
    return undefined;
  } catch (error) {
    const reasons = (error as AggregateError).errors as readonly Error[];
    const last = defined(reasons.at(-1), "the last reason");
    if (last instanceof BadCaBundle) throw last;
    return { status: "False", reason: "FailedDiscoveryCheck", message: last.message };
  }
}

/** Rejects with Error: the server does not respond with its discovery document. */
async function discovered(
  spec: ApiServiceSpec,
  { backends, clock, objects, options, random }: AvailabilityDeps,
): Promise<void> {
  const service = defined(spec.service, "the service");
  const address = placeOf(service, objects, options, random);
  const path = `/apis/${spec.group}/${spec.version}`;
  const authority = joinHostPort(address.host, address.port);
  const url = `https://${authority}${path}`;
  const headers = { ...AGGREGATOR, host: authority };
  const request = {
    place: backendPlace(spec, address),
    method: "GET",
    path,
    headers,
    body: new Uint8Array(),
  };
  const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: 0 };
  let status: number;
  try {
    ({ status } = await wholeResponse(backends, request, bounds, clock));
  } catch (error) {
    const why = `Get ${JSON.stringify(url)}: ${(error as Error).message}`;
    throw new Error(`failing or missing response from ${url}: ${why}`);
  }
  if (status >= 200 && status < 300) return;
  throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${status}`);
}

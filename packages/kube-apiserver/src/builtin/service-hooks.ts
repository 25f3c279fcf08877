/**
 * Gives Services their addresses and ports of nodes, and takes them back (kubernetes:
 * registry/core/service/storage/alloc.go). What a write was given goes back if it is not written;
 * what it gives up goes back once it is.
 *
 *     create   families -> addresses -> ports      undone in case of any error behind
 *     update   what it had -> families -> addresses -> ports
 *     delete   all of it goes back
 */
import type { Logger } from "@quorate/host";
import {
  ApiError,
  type BegunWrite,
  internalError,
  interpretStorageError,
  invalidValue,
  type KubeObject,
  type StoreHooks,
  textOf as textOfError,
} from "@quorate/kube-storage";
import type { NodePorts, PortSet } from "./node-ports.ts";
import { listOf, numberOf, type ObjectFields, objectOf, textOf } from "./rules/rules.ts";
import { isHeadless, needsHealthCheck } from "./rules/services.ts";
import { NotAllocated, type ServiceAddresses, type ServiceName } from "./service-addresses.ts";
import {
  addressesOf,
  familiesOf,
  serviceInvalid,
  staysPreferred,
  withFamilies,
} from "./service-families.ts";
import { type Family, familyOf } from "./service-ranges.ts";
import { needsClusterIp, needsNodePort, withAllocated, withClusterIps } from "./services.ts";

/** Addresses and ports to give back. */
interface Holdings {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

export interface ServiceHooksDeps {
  /** The cluster's families, its default first. */
  readonly families: readonly Family[];
  readonly addresses: ServiceAddresses;
  readonly ports: NodePorts;
  readonly logger: Logger;
}

const PORT_RANGES = { group: "", resource: "rangeallocations" };

/** One write of a service. */
interface Call {
  readonly service: ServiceName;
  readonly dryRun: boolean;
}

export function serviceHooks(deps: ServiceHooksDeps): StoreHooks {
  return new ServiceAllocation(deps).hooks;
}

/** The families of a service that was stored before it had any. */
function withOldFamilies(spec: ObjectFields): ObjectFields {
  const addresses = addressesOf(spec);
  if (familiesOf(spec).length > 0 || addresses.length === 0 || isHeadless(spec)) return spec;
  return { ...spec, ipFamilies: addresses.map(familyOf) };
}

function portsOf(spec: ObjectFields): number[] {
  return listOf(spec["ports"]).flatMap(({ nodePort }) => numberOf(nodePort) || []);
}

/** All that a stored service holds. */
export function holdingsOf(spec: ObjectFields): Holdings {
  const hasAddresses = needsClusterIp(spec) && !isHeadless(spec);
  const health = needsHealthCheck(spec) ? numberOf(spec["healthCheckNodePort"]) : 0;
  const ports = portsOf(spec);
  return {
    addresses: hasAddresses ? addressesOf(spec) : [],
    ports: health === 0 ? ports : [...ports, health],
  };
}

/** Whether ports get numbers that nobody asked for. */
function fillsPorts(spec: ObjectFields): boolean {
  return spec["type"] === "NodePort" || spec["allocateLoadBalancerNodePorts"] !== false;
}

class ServiceAllocation {
  readonly #deps: ServiceHooksDeps;

  constructor(deps: ServiceHooksDeps) {
    this.#deps = deps;
  }

  get hooks(): StoreHooks {
    return {
      beginCreate: (ctx, service, dryRun) =>
        this.#begin(callOf(ctx.namespace, service, dryRun), service, undefined),
      beginUpdate: (ctx, service, old, dryRun) =>
        this.#begin(callOf(ctx.namespace, old, dryRun), service, objectOf(old["spec"])),
      afterDelete: (service) => this.#release(holdingsOf(objectOf(service["spec"]))),
    };
  }

  async #begin(call: Call, object: KubeObject, old: ObjectFields | undefined): Promise<BegunWrite> {
    const before = old && withOldFamilies(withClusterIps(old));
    const own = withClusterIps(objectOf(object["spec"]));
    const kept = before === undefined ? own : withAllocated(own, before);
    const spec = withFamilies(kept, before, call.service.name, this.#deps.families);
    const given: { addresses: string[]; ports: readonly number[] } = { addresses: [], ports: [] };
    try {
      const addressed = await this.#addressed(call, spec, before, given.addresses);
      const { ports, spec: complete } = await this.#withPorts(call, addressed, before);
      given.ports = ports;
      const freed = freedBy(complete, before);
      return {
        object: { ...object, spec: complete },
        finish: async (isWritten) => {
          if (!call.dryRun) await this.#release(isWritten ? freed : given);
        },
      };
    } catch (error) {
      if (!call.dryRun) await this.#release(given);
      throw error;
    }
  }

  /** @param given gets what was taken */
  async #addressed(
    call: Call,
    spec: ObjectFields,
    before: ObjectFields | undefined,
    given: string[],
  ): Promise<ObjectFields> {
    if (!needsClusterIp(spec) || isHeadless(spec) || staysPreferred(spec, before)) return spec;
    // One with addresses keeps them; a second family adds one.
    const had = before !== undefined && needsClusterIp(before) ? addressesOf(before) : [];
    if (had[0] === "None") return spec;
    const families = familiesOf(spec);
    const count = before === undefined ? 0 : familiesOf(before).length;
    if (had.length > 0 && !(count === 1 && families.length === 2)) return spec;
    const addresses = [...addressesOf(spec)];
    for (let index = had.length; index < families.length; index++) {
      const wanted = addresses[index] ?? "";
      addresses[index] = await this.#take(call, families[index] as Family, wanted, addresses);
      if (!call.dryRun) given.push(addresses[index] ?? "");
    }
    return { ...spec, clusterIP: addresses[0] ?? "", clusterIPs: addresses };
  }

  async #take(
    { service, dryRun }: Call,
    family: Family,
    wanted: string,
    all: readonly string[],
  ): Promise<string> {
    try {
      return await this.#deps.addresses.take(service, family, wanted, dryRun);
    } catch (error) {
      const why = textOfError(error);
      if (wanted === "") {
        if (error instanceof ApiError) throw error;
        throw internalError(`failed to allocate a serviceIP: ${why}`);
      }
      const text = `failed to allocate IP ${wanted}: ${why}`;
      throw serviceInvalid(service.name, [invalidValue("spec.clusterIPs", all, text)]);
    }
  }

  async #withPorts(
    { service, dryRun }: Call,
    spec: ObjectFields,
    before: ObjectFields | undefined,
  ): Promise<{ readonly spec: ObjectFields; readonly ports: readonly number[] }> {
    const needsPorts = needsNodePort(spec);
    const newHealth = needsHealthCheck(spec) && !(before !== undefined && needsHealthCheck(before));
    if (!needsPorts && !newHealth) return { spec, ports: [] };
    try {
      return await this.#deps.ports.change(dryRun, (set) => {
        const ports = needsPorts ? portsFor(spec, before, service.name, set) : spec["ports"];
        const health = newHealth ? { healthCheckNodePort: healthPort(spec, set) } : {};
        return { spec: { ...spec, ports, ...health }, ports: set.taken };
      });
    } catch (error) {
      throw interpretStorageError(error, "update", PORT_RANGES, "");
    }
  }

  /** A later repair releases what this cannot. */
  async #release({ addresses, ports }: Holdings): Promise<void> {
    try {
      for (const address of addresses) await this.#deps.addresses.release(address);
      if (ports.length === 0) return;
      await this.#deps.ports.change(false, (set) => {
        for (const port of ports) set.release(port);
      });
    } catch (error) {
      const text = textOfError(error);
      this.#deps.logger.warn("unable to release addresses of a service", { error: text });
    }
  }
}

function callOf(namespace: string, { metadata }: KubeObject, dryRun: boolean): Call {
  const service = { namespace: metadata.namespace ?? namespace, name: metadata.name ?? "" };
  return { service, dryRun };
}

/** What the service had and has no more. */
function freedBy(spec: ObjectFields, before: ObjectFields | undefined): Holdings {
  const had = holdingsOf(before ?? {});
  // The fields of a former type are still there.
  const left = holdingsOf(spec);
  const ports = new Set(needsNodePort(spec) ? left.ports : []);
  return {
    addresses: had.addresses.filter((address) => !left.addresses.includes(address)),
    ports: had.ports.filter((port) => !ports.has(port)),
  };
}

function portsFor(
  spec: ObjectFields,
  before: ObjectFields | undefined,
  name: string,
  set: PortSet,
): readonly ObjectFields[] {
  return before === undefined ? newPorts(spec, name, set) : changedPorts(spec, before, name, set);
}

function taken<T>(take: () => T, name: string, index: number, port: number): T {
  try {
    return take();
  } catch (error) {
    if (!(error instanceof NotAllocated)) throw error;
    if (port === 0) throw internalError(`failed to allocate a nodePort: ${error.message}`);
    const at = `spec.ports[${index}].nodePort`;
    throw serviceInvalid(name, [invalidValue(at, port, error.message)]);
  }
}

/** Ports with the same number, for several protocols, share the port of nodes. */
function newPorts(spec: ObjectFields, name: string, set: PortSet): readonly ObjectFields[] {
  const all = listOf(spec["ports"]);
  const wanted = new Map<number, number>();
  for (const { port, nodePort } of all) {
    const [number, asked] = [numberOf(port), numberOf(nodePort)];
    if (asked !== 0 && !wanted.has(number)) wanted.set(number, asked);
  }
  const shared = new Map<number, number>();
  return all.map((one, index) => {
    const [port, own] = [numberOf(one["port"]), numberOf(one["nodePort"])];
    if (own === 0 && !fillsPorts(spec)) return one;
    const known = shared.get(port);
    if (known === undefined) {
      const asked = wanted.get(port) ?? 0;
      if (asked !== 0) taken(() => set.take(asked), name, index, asked);
      const nodePort = asked || taken(() => set.takeAny(), name, index, 0);
      shared.set(port, nodePort);
      return { ...one, nodePort };
    }
    if (own === 0) return { ...one, nodePort: known };
    if (own !== known) taken(() => set.take(own), name, index, own);
    return one;
  });
}

function changedPorts(
  spec: ObjectFields,
  before: ObjectFields,
  name: string,
  set: PortSet,
): readonly ObjectFields[] {
  const had = new Set(portsOf(before));
  const seen = new Set<string>();
  const own = new Set<number>();
  return listOf(spec["ports"]).map((one, index) => {
    const asked = numberOf(one["nodePort"]);
    if (asked === 0 && !fillsPorts(spec)) return one;
    if (asked !== 0 && !had.has(asked) && !own.has(asked)) {
      taken(() => set.take(asked), name, index, asked);
      own.add(asked);
    }
    const nodePort = asked || taken(() => set.takeAny(), name, index, 0);
    const key = `{${textOf(one["protocol"])} ${nodePort}}`;
    if (seen.has(key)) throw new ApiError(500, "", `duplicate nodePort: ${key}`);
    seen.add(key);
    return { ...one, nodePort };
  });
}

function healthPort(spec: ObjectFields, set: PortSet): number {
  const asked = numberOf(spec["healthCheckNodePort"]);
  try {
    if (asked === 0) return set.takeAny();
    set.take(asked);
    return asked;
  } catch (error) {
    if (!(error instanceof NotAllocated)) throw error;
    const what = asked === 0 ? "a HealthCheck NodePort" : "requested HealthCheck NodePort";
    throw internalError(`failed to allocate ${what} ${asked}: ${error.message}`);
  }
}

/**
 * Cluster addresses of Services (kubernetes: registry/core/service/ipallocator). An IPAddress
 * object is the lock: the server that creates it has the address, and it stays through restarts.
 * The ranges are those of the ServiceCIDRs.
 */
import { type Clock, Pauses, type Random } from "@quorate/host";
import type { KubeObject } from "@quorate/kube-storage";
import { CodedError } from "@quorate/proto";
import {
  isAlreadyExists,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import { listOf, objectOf } from "./rules/rules.ts";
import { AddressRange, canonicalAddress, type Family, familyOf } from "./service-ranges.ts";

export const ADDRESSES: ResourceRef = {
  group: "networking.k8s.io",
  version: "v1",
  resource: "ipaddresses",
};
export const RANGES: ResourceRef = {
  group: "networking.k8s.io",
  version: "v1",
  resource: "servicecidrs",
};
export const ALLOCATOR = "ipallocator.k8s.io";
export const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const FAMILY = "ipaddress.kubernetes.io/ip-family";

/** Why an address or a port is not given, in Kubernetes' words. */
export class NotAllocated extends CodedError<"NotAllocated"> {
  constructor(why: string) {
    super("NotAllocated", "NotAllocated", why);
  }
}

const FULL = "range is full";
const NOT_READY = "allocator not ready";

/** What is known of the objects; it may lag behind the store. */
export interface AddressBook {
  isReady(): boolean;
  ranges(): Iterable<KubeObject>;
  isTaken(address: string): boolean;
}

export interface ServiceAddressesDeps {
  readonly client: LocalClient;
  readonly book: AddressBook;
  readonly clock: Clock;
  readonly random: Random;
}

/** Whose address it is. */
export interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

export function addressObject(address: string, { namespace, name }: ServiceName): KubeObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "IPAddress",
    metadata: {
      name: address,
      labels: { [FAMILY]: familyOf(address), [MANAGED_BY]: ALLOCATOR },
    },
    spec: { parentRef: { resource: "services", namespace, name } },
  };
}

/** No condition is as good as Ready: the controller that sets it may not run. */
function isReady(range: KubeObject): boolean {
  if (range.metadata.deletionTimestamp !== undefined) return false;
  const conditions = listOf(objectOf(range["status"])["conditions"]);
  const ready = conditions.find((one) => one["type"] === "Ready");
  return ready === undefined || ready["status"] === "True";
}

export class ServiceAddresses {
  readonly #deps: ServiceAddressesDeps;

  constructor(deps: ServiceAddressesDeps) {
    this.#deps = deps;
  }

  /**
   * Gives a service an address. Rejects with NotAllocated, or ApiError where the store fails.
   * @param wanted "" for any
   */
  async take(
    service: ServiceName,
    family: Family,
    wanted: string,
    dryRun: boolean,
  ): Promise<string> {
    const ranges = this.#ranges(family);
    if (dryRun) return checked(ranges, wanted);
    if (wanted === "") return await this.#takeAny(service, ranges);
    const address = canonicalAddress(wanted) ?? wanted;
    if (!ranges.some((range) => range.gives(address)))
      throw new NotAllocated("the provided network does not match the current range");
    if (await this.#isTaken(service, address))
      throw new NotAllocated("provided IP is already allocated");
    return wanted;
  }

  /** What is not taken, or was another's to take, is no error. */
  async release(address: string): Promise<void> {
    try {
      await this.#deps.client.delete(ADDRESSES, "", canonicalAddress(address) ?? address);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  #ranges(family: Family): readonly AddressRange[] {
    const { book } = this.#deps;
    if (!book.isReady()) throw new NotAllocated(NOT_READY);
    return [...book.ranges()].filter(isReady).flatMap((object) =>
      listOf<string>(objectOf(object["spec"])["cidrs"]).flatMap((cidr) => {
        const range = AddressRange.parse(cidr);
        return range?.family === family ? [range] : [];
      }),
    );
  }

  async #takeAny(service: ServiceName, ranges: readonly AddressRange[]): Promise<string> {
    for (const range of ranges) {
      const { size, staticSize } = range;
      const upper = await this.#takeFrom(service, range, staticSize, size);
      const address = upper ?? (await this.#takeFrom(service, range, 0, staticSize));
      if (address !== undefined) return address;
    }
    throw new NotAllocated(FULL);
  }

  /** Tries the addresses from `begin` to below `end`, from a random one on. */
  async #takeFrom(
    service: ServiceName,
    range: AddressRange,
    begin: number,
    end: number,
  ): Promise<string | undefined> {
    const { book, random, clock } = this.#deps;
    const count = end - begin;
    const start = Math.floor(random.unit() * count);
    const pauses = new Pauses(clock.turns);
    for (let tried = 0; tried < count; tried++) {
      const address = range.at(begin + ((start + tried) % count));
      if (!book.isTaken(address) && !(await this.#isTaken(service, address))) return address;
      await pauses.next();
    }
    return undefined;
  }

  /** Whether another one has the address; otherwise the service has it now. */
  async #isTaken(service: ServiceName, address: string): Promise<boolean> {
    try {
      await this.#deps.client.create(ADDRESSES, "", addressObject(address, service));
      return false;
    } catch (error) {
      if (isAlreadyExists(error)) return true;
      throw error;
    }
  }
}

/** The address of a dry run, which takes none: any one is the network's name. */
function checked(ranges: readonly AddressRange[], wanted: string): string {
  const [range] = ranges;
  if (range === undefined) throw new NotAllocated(NOT_READY);
  if (wanted === "") return range.network;
  if (range.gives(canonicalAddress(wanted) ?? wanted)) return wanted;
  throw new NotAllocated(
    `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${range.cidr}`,
  );
}

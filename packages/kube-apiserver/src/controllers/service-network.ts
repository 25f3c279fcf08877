/**
 * Addresses and ports of nodes that the Services of a cluster have (Kubernetes: pkg/controlplane/
 * controller/defaultservicecidr, registry/core/service/{ipallocator,portallocator}/controller).
 * Each server does the same, and all agree by the store.
 *
 *     start   the ServiceCIDR "kubernetes" -> repair -> the Service "kubernetes"
 *     later   every 10 s the ServiceCIDR, every 3 minutes the repair
 *
 * A repair takes what stored Services hold and is not taken, and releases what nobody holds: a
 * server that ended between a service and its address leaves such.
 */
import { type Clock, type Logger, type Random, sleep, type Timer } from "@quorate/host";
import {
  type KubeObject,
  type Lister,
  metaTime,
  parseTime,
  type ServedResources,
  type StorageInterface,
  type StoreHooks,
  textOf,
  type Watcher,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { NodePorts, type PortRange } from "../builtin/node-ports.ts";
import { listOf, objectOf } from "../builtin/rules/rules.ts";
import {
  ADDRESSES,
  type AddressBook,
  ALLOCATOR,
  addressObject,
  MANAGED_BY,
  RANGES,
  ServiceAddresses,
} from "../builtin/service-addresses.ts";
import { holdingsOf, serviceHooks } from "../builtin/service-hooks.ts";
import { AddressRange, canonicalAddress } from "../builtin/service-ranges.ts";
import { Informer } from "../informers/informer.ts";
import { isAlreadyExists, type LocalClient, type ResourceRef } from "../informers/local-client.ts";
import { KubernetesService, type ServicePlace } from "./kubernetes-service.ts";

export interface ServiceNetworkOptions {
  /** One or two, of different families; the first is the default: "10.0.0.0/24". */
  readonly ranges: readonly string[];
  readonly nodePorts: PortRange;
}

export interface ServiceNetworkDeps {
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Of portRangeSpec. */
  readonly portStorage: StorageInterface;
}

export const RANGE_PERIOD_MS = 10_000;
export const REPAIR_PERIOD_MS = 180_000;
/** A younger address may belong to a service that is about to be written. */
const MIN_ORPHAN_MS = 60_000;
/** A port that nobody holds is released by this repair; one before may see a service on its way. */
export const REPAIRS_BEFORE_RELEASE = 3;
const SEEN_PERIOD_MS = 5;
/** How long a start waits for the range that it wrote. */
const SEEN_TIMEOUT_MS = 10_000;
const RANGE_NAME = "kubernetes";
const SERVICES: ResourceRef = { group: "", version: "v1", resource: "services" };

export class ServiceNetwork {
  readonly hooks: StoreHooks;
  readonly #options: ServiceNetworkOptions;
  readonly #deps: ServiceNetworkDeps;
  readonly #ports: NodePorts;
  readonly #cidrs: readonly AddressRange[];
  /** How often each port was held by nobody. */
  #leaked = new Map<number, number>();
  #addresses: Informer | undefined;
  #ranges: Informer | undefined;
  #service: KubernetesService | undefined;
  #timers: readonly Timer[] = [];
  #isReady = false;
  readonly #book: AddressBook = {
    isReady: () => this.#addresses?.hasSynced === true && this.#ranges?.hasSynced === true,
    ranges: () => this.#ranges?.objects() ?? [],
    isTaken: (address) => this.#addresses?.get("", address) !== undefined,
  };

  constructor(options: ServiceNetworkOptions, deps: ServiceNetworkDeps) {
    const { client, clock, random, logger } = deps;
    this.#options = options;
    this.#deps = deps;
    this.#ports = new NodePorts(options.nodePorts, deps.portStorage, random.fork("ports"));
    const addresses = new ServiceAddresses({
      client,
      clock,
      random: random.fork("addresses"),
      book: this.#book,
    });
    this.#cidrs = options.ranges.map((cidr) => defined(AddressRange.parse(cidr), "a range"));
    const families = this.#cidrs.map(({ family }) => family);
    this.hooks = serviceHooks({ families, addresses, ports: this.#ports, logger });
  }

  /** Whether services can be given addresses. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /**
   * Resolves when services can be created.
   * @param place of this server, for the Service "kubernetes"; absent: there is none
   */
  async start(place: ServicePlace | undefined): Promise<void> {
    const { client, clock, logger } = this.#deps;
    this.#addresses = this.#informer(ADDRESSES);
    this.#ranges = this.#informer(RANGES);
    this.#addresses.start();
    this.#ranges.start();
    await Promise.all([this.#addresses.synced, this.#ranges.synced]);
    await this.#logged("the default ServiceCIDR", () => this.#ensureRange());
    await this.#seen();
    await this.#logged("addresses of services", () => this.#repair());
    this.#timers = [
      clock.every(RANGE_PERIOD_MS, () =>
        this.#logged("the default ServiceCIDR", () => this.#ensureRange()),
      ),
      clock.every(REPAIR_PERIOD_MS, () =>
        this.#logged("addresses of services", () => this.#repair()),
      ),
    ];
    if (place !== undefined) {
      const clusterIp = defined(this.#cidrs[0], "a range").at(0);
      this.#service = new KubernetesService(place, { clusterIp, client, clock, logger });
      await this.#service.start();
    }
    this.#isReady = true;
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await this.#service?.stop();
    this.#addresses?.stop();
    this.#ranges?.stop();
  }

  #informer(ref: ResourceRef): Informer {
    const { served, clock, random, logger } = this.#deps;
    const { group, version, resource } = ref;
    const { storage } = defined(served.find(group, version, resource, ""), "the served resource");
    return new Informer(
      { storage: storage as Lister & Watcher },
      {},
      {
        clock,
        random: random.fork(`informer ${resource}`),
        logger,
      },
    );
  }

  async #logged(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.logger.warn(`unable to keep ${what}`, { error: textOf(error) });
    }
  }

  async #seen(): Promise<void> {
    const { clock } = this.#deps;
    const endMs = clock.monotonicMs() + SEEN_TIMEOUT_MS;
    while (this.#ranges?.get("", RANGE_NAME) === undefined && clock.monotonicMs() < endMs)
      await sleep(clock, SEEN_PERIOD_MS);
  }

  /** An existing one stays as it is, but for a second family. */
  async #ensureRange(): Promise<void> {
    const { client, clock } = this.#deps;
    const cidrs = this.#cidrs.map(({ cidr }) => cidr);
    let present = await client.get(RANGES, "", RANGE_NAME);
    if (present === undefined) {
      const head = { apiVersion: "networking.k8s.io/v1", kind: "ServiceCIDR" };
      const range = { ...head, metadata: { name: RANGE_NAME }, spec: { cidrs } };
      try {
        present = await client.create(RANGES, "", range);
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        return;
      }
    }
    const own = listOf<string>(objectOf(present["spec"])["cidrs"]);
    if (own.length === 1 && cidrs.length === 2 && own[0] === cidrs[0]) {
      await client.update(RANGES, "", RANGE_NAME, (old) => ({ ...old, spec: { cidrs } }));
      return;
    }
    if (own.join() !== cidrs.join() || present.metadata.deletionTimestamp !== undefined) return;
    if (listOf(objectOf(present["status"])["conditions"]).length > 0) return;
    const lastTransitionTime = metaTime(clock.wallMs());
    const message = "Kubernetes default Service CIDR is ready";
    const ready = { type: "Ready", status: "True", lastTransitionTime, reason: "", message };
    const status = { conditions: [ready] };
    await client.update({ ...RANGES, subresource: "status" }, "", RANGE_NAME, (old) => ({
      ...old,
      status,
    }));
  }

  async #repair(): Promise<void> {
    const { client } = this.#deps;
    const before = await this.#ports.present();
    const ports = new Set<number>();
    const addresses = new Set<string>();
    await client.each(SERVICES, "", async (service) => {
      const { namespace = "", name = "" } = service.metadata;
      const held = holdingsOf(objectOf(service["spec"]));
      for (const port of held.ports) ports.add(port);
      for (const text of held.addresses) {
        const address = canonicalAddress(text);
        if (address === undefined) continue;
        addresses.add(address);
        if (this.#book.isTaken(address) || !this.#isInRange(address)) continue;
        await this.#take(addressObject(address, { namespace, name }));
      }
    });
    await this.#repairPorts(before, ports);
    await this.#releaseOrphans(addresses);
  }

  #isInRange(address: string): boolean {
    for (const range of this.#ranges?.objects() ?? [])
      for (const cidr of listOf<string>(objectOf(range["spec"])["cidrs"]))
        if (AddressRange.parse(cidr)?.gives(address) === true) return true;
    return false;
  }

  async #take(address: KubeObject): Promise<void> {
    try {
      await this.#deps.client.create(ADDRESSES, "", address);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #repairPorts(before: KubeObject | undefined, held: ReadonlySet<number>): Promise<void> {
    const { first, last } = this.#options.nodePorts;
    await this.#ports.rebuild(before, (set) => {
      for (const port of held) if (port >= first && port <= last && !set.has(port)) set.take(port);
      const leaked = new Map<number, number>();
      for (let port = first; port <= last; port++) {
        if (held.has(port) || !set.has(port)) continue;
        const times = (this.#leaked.get(port) ?? 0) + 1;
        if (times >= REPAIRS_BEFORE_RELEASE) set.release(port);
        else leaked.set(port, times);
      }
      this.#leaked = leaked;
    });
  }

  async #releaseOrphans(held: ReadonlySet<string>): Promise<void> {
    const { client, clock } = this.#deps;
    const nowMs = clock.wallMs();
    await client.each(ADDRESSES, "", async ({ metadata }) => {
      const { name = "", uid, labels, creationTimestamp } = metadata;
      if (labels?.[MANAGED_BY] !== ALLOCATOR || held.has(name)) return;
      if (nowMs - (parseTime(creationTimestamp) ?? nowMs) < MIN_ORPHAN_MS) return;
      await client.delete(ADDRESSES, "", name, { preconditions: { uid } });
    });
  }
}

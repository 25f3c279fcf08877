/**
 * The Service "kubernetes" in the namespace "default", by which programs in a cluster find the API
 * server, with its Endpoints and EndpointSlice (Kubernetes: pkg/controlplane/controller/
 * kubernetesservice, pkg/controlplane/reconcilers). Each server of a cluster adds its own address
 * and takes it away when it stops; that of a server that was killed stays until its next stop.
 */

import type { Clock, Logger, Timer } from "@quorate/host";
import { type KubeObject, semanticEqual, textOf } from "@quorate/kube-storage";
import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";

/** Where clients in a cluster reach the server. */
export interface ServicePlace {
  /** The address and port of this server. */
  readonly address: string;
  readonly port: number;
}

export interface KubernetesServiceDeps {
  /** The address of the Service, such as "10.0.0.1". */
  readonly clusterIp: string;
  readonly client: LocalClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is gone comes back after this time, as in Kubernetes. */
export const SERVICE_PERIOD_MS = 10_000;

const NAMESPACE = "default";
const NAME = "kubernetes";
const PORT_NAME = "https";
const SERVICES: ResourceRef = { group: "", version: "v1", resource: "services" };
const ENDPOINTS: ResourceRef = { group: "", version: "v1", resource: "endpoints" };
const SLICES: ResourceRef = {
  group: "discovery.k8s.io",
  version: "v1",
  resource: "endpointslices",
};

interface Subset {
  readonly addresses?: readonly { readonly ip: string }[];
}

export class KubernetesService {
  readonly #place: ServicePlace;
  readonly #deps: KubernetesServiceDeps;
  #timer: Timer | undefined;

  constructor(place: ServicePlace, deps: KubernetesServiceDeps) {
    this.#place = place;
    this.#deps = deps;
  }

  /** Resolves when all three objects are there, or with a line in the log. */
  async start(): Promise<void> {
    this.#timer = this.#deps.clock.every(SERVICE_PERIOD_MS, () => void this.#keep());
    await this.#keep();
  }

  /** Takes this server's address away. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    if (this.#timer === undefined) return;
    await this.#logged(() => this.#writeAddresses(false));
  }

  #keep(): Promise<void> {
    return this.#logged(async () => {
      await this.#ensureService();
      await this.#writeAddresses(true);
    });
  }

  async #logged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Another server writes the same; the next turn sees what it wrote.
      if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return;
      const text = textOf(error);
      this.#deps.logger.warn("unable to sync kubernetes service", { error: text });
    }
  }

  async #ensureService(): Promise<void> {
    const { client } = this.#deps;
    if ((await client.get(SERVICES, NAMESPACE, NAME)) !== undefined) return;
    const { clusterIp } = this.#deps;
    const { port } = this.#place;
    const family = clusterIp.includes(":") ? "IPv6" : "IPv4";
    await client.create(SERVICES, NAMESPACE, {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: NAME,
        namespace: NAMESPACE,
        labels: { component: "apiserver", provider: "kubernetes" },
      },
      spec: {
        clusterIP: clusterIp,
        clusterIPs: [clusterIp],
        internalTrafficPolicy: "Cluster",
        ipFamilies: [family],
        ipFamilyPolicy: "SingleStack",
        ports: [{ name: PORT_NAME, port: 443, protocol: "TCP", targetPort: port }],
        sessionAffinity: "None",
        type: "ClusterIP",
      },
    });
  }

  /** @param isPresent whether this server is among the addresses */
  async #writeAddresses(isPresent: boolean): Promise<void> {
    const { address, port } = this.#place;
    const present = await this.#deps.client.get(ENDPOINTS, NAMESPACE, NAME);
    const subsets = (present?.["subsets"] ?? []) as readonly Subset[];
    const others = subsets
      .flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip))
      .filter((ip) => ip !== address);
    const addresses = [...others, ...(isPresent ? [address] : [])].sort();
    const ports = [{ name: PORT_NAME, port, protocol: "TCP" }];
    const isIpv6 = addresses.every((ip) => ip.includes(":"));
    await this.#write(ENDPOINTS, present, {
      apiVersion: "v1",
      kind: "Endpoints",
      metadata: {
        name: NAME,
        namespace: NAMESPACE,
        labels: { "endpointslice.kubernetes.io/skip-mirror": "true" },
      },
      subsets:
        addresses.length === 0 ? [] : [{ addresses: addresses.map((ip) => ({ ip })), ports }],
    });
    await this.#write(SLICES, await this.#deps.client.get(SLICES, NAMESPACE, NAME), {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: NAME,
        namespace: NAMESPACE,
        labels: { "kubernetes.io/service-name": NAME },
      },
      addressType: isIpv6 && addresses.length > 0 ? "IPv6" : "IPv4",
      endpoints: addresses
        .filter((ip) => isIpv6 || !ip.includes(":"))
        .map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
      ports,
    });
  }

  /** Creates the object, or changes what differs from `wanted`. */
  async #write(
    ref: ResourceRef,
    present: KubeObject | undefined,
    wanted: KubeObject,
  ): Promise<void> {
    const { client } = this.#deps;
    if (present === undefined) {
      await client.create(ref, NAMESPACE, wanted);
      return;
    }
    const { metadata: _, ...fields } = wanted;
    await client.update(ref, NAMESPACE, NAME, (old) => {
      const labels = { ...old.metadata.labels, ...wanted.metadata.labels };
      const changed = { ...old, ...fields, metadata: { ...old.metadata, labels } };
      return semanticEqual(changed, old) ? undefined : changed;
    });
  }
}

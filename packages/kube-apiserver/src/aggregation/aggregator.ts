/**
 * Groups and versions that other API servers serve, by their APIServices (kube-aggregator):
 *
 *     APIService -> is its service there?     a condition in its status, each 30 s and on changes
 *                -> what does it serve?       for discovery and OpenAPI, each minute
 *     request    -> forward to the service    with the user's name in headers
 */
import type { Clock, Logger, Random, Timer } from "@quorate/host";
import type { KubeObject, Lister, ServedResources, Watcher } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import {
  type ApiServiceSpec,
  apiServiceSpecOf,
  availableConditionOf,
  sameSpec,
  withAvailable,
} from "../builtin/api-services.ts";
import { WorkQueue } from "../controllers/work-queue.ts";
import type { Call } from "../handlers/call.ts";
import { Informer, type InformerHandler } from "../informers/informer.ts";
import { isConflict, isNotFound, type LocalClient } from "../informers/local-client.ts";
import { BadCaBundle, backendPlace, checkedAvailability } from "./availability.ts";
import type { BackendPlace, Backends } from "./backends.ts";
import { forward, unavailable } from "./forward.ts";
import { API_SERVICES, LocalServices } from "./local-services.ts";
import { type Address, type PlaceOptions, placeOf, type ServiceObjects } from "./places.ts";
import { type RemoteDocuments, readDocuments, sameDocuments } from "./remote-documents.ts";

/** APIServices of other servers; further ones are not served. */
export const MAX_REMOTE_SERVICES = 1000;
/** Requests that go on to other servers at a time, watches included. */
export const MAX_FORWARDED_REQUESTS = 4096;
export const CHECK_PERIOD_MS = 30_000;
export const DOCUMENTS_PERIOD_MS = 60_000;
const V3_PREFIX = "/openapi/v3";
const NONE: RemoteDocuments = { resources: [], v2: undefined, v3Url: undefined };

/** A group and version of another server, for discovery and OpenAPI. */
export interface RemoteVersion extends RemoteDocuments {
  readonly spec: ApiServiceSpec;
  /** Whether its documents are as of the last minute. */
  readonly isCurrent: boolean;
}

interface Remote extends RemoteVersion {
  readonly object: KubeObject;
  readonly readMs: number;
}

export interface AggregatorDeps {
  readonly backends: Backends;
  readonly isIdentityHeader?: ((name: string) => boolean) | undefined;
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class Aggregator {
  readonly #options: PlaceOptions;
  readonly #deps: AggregatorDeps;
  /** By "group/version". */
  readonly #remotes = new Map<string, Remote>();
  readonly #listeners = new Set<() => void>();
  readonly #forwarded = new Set<Call>();
  readonly #queue: WorkQueue<string>;
  #local: LocalServices | undefined;
  #services: Informer | undefined;
  #slices: Informer | undefined;
  #informers: Informer[] = [];
  /** EndpointSlices by "namespace/service"; made when they are asked for. */
  #slicesOf: Map<string, KubeObject[]> | undefined;
  #timer: Timer | undefined;

  constructor(options: PlaceOptions, deps: AggregatorDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#queue = new WorkQueue(
      {
        name: "API services",
        concurrency: 5,
        maxKeys: MAX_REMOTE_SERVICES,
        process: (key) => this.#process(key),
        rescan: () => this.#checkAll(),
      },
      deps.clock,
      deps.logger,
    );
  }

  /**
   * Resolves when all APIServices are known, and those of the groups served here are written.
   * Called when what the definitions of the store declare is served.
   */
  async start(): Promise<void> {
    const set = (object: KubeObject): void => {
      this.#set(object);
      this.#local?.observe(object);
    };
    const known = this.#informer(API_SERVICES.group, API_SERVICES.resource, {
      added: set,
      updated: set,
      deleted: (object) => {
        this.#delete(keyOf(apiServiceSpecOf(object)));
        this.#local?.observe(object);
      },
    });
    await known.synced;
    this.#local = new LocalServices({ ...this.#deps, known });
    await this.#local.start();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#local?.stop();
    this.#queue.stop();
    for (const informer of this.#informers) informer.stop();
    this.endAll();
  }

  /** Ends all responses of other servers. */
  endAll(): void {
    for (const call of this.#forwarded) call.abort();
  }

  /** In the order of their names. */
  get versions(): readonly RemoteVersion[] {
    return [...this.#remotes.values()].sort((a, b) => (keyOf(a.spec) < keyOf(b.spec) ? -1 : 1));
  }

  /** Calls `listener` after each change of `versions`. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Whether another server serves the path; then the promise of its response, or its error. */
  serve(call: Call): Promise<void> | undefined {
    const remote = this.#remotes.size === 0 ? undefined : this.#remoteOf(call.target.path);
    return remote && this.#forward(call, remote);
  }

  async #forward(call: Call, { object, spec }: Remote): Promise<void> {
    if (availableConditionOf(object)?.status !== "True" || this.#isFull)
      return unavailable(call, 503, "service unavailable");
    let place: BackendPlace;
    try {
      place = backendPlace(spec, this.#addressOf(spec));
    } catch (error) {
      const { message } = error as Error;
      this.#deps.logger.warn("error resolving a service", { error: message });
      if (error instanceof BadCaBundle) return unavailable(call, 500, message);
      return unavailable(call, 503, "service unavailable");
    }
    this.#forwarded.add(call);
    try {
      await forward(call, place, this.#deps);
    } finally {
      this.#forwarded.delete(call);
    }
  }

  get #isFull(): boolean {
    return this.#forwarded.size >= MAX_FORWARDED_REQUESTS;
  }

  /** The server of "/apis/GROUP/VERSION", of what is below it, and of its OpenAPI document. */
  #remoteOf(path: string): Remote | undefined {
    const below = path.startsWith(V3_PREFIX) ? path.slice(V3_PREFIX.length) : path;
    if (!below.startsWith("/apis/")) return undefined;
    const [, , group, version] = below.split("/", 4);
    return this.#remotes.get(`${group}/${version}`);
  }

  #set(object: KubeObject): void {
    const spec = apiServiceSpecOf(object);
    const key = keyOf(spec);
    if (spec.service === undefined || this.#deps.served.hasBuiltIns(spec.group)) {
      this.#delete(key);
      return;
    }
    const known = this.#remotes.get(key);
    if (known === undefined && this.#remotes.size >= MAX_REMOTE_SERVICES) return;
    const isOther = known?.object.metadata.uid !== object.metadata.uid;
    const before = known === undefined || isOther ? { ...NONE, readMs: -Infinity } : known;
    this.#watchServices();
    this.#remotes.set(key, { isCurrent: false, ...before, object, spec });
    if (known === undefined || isOther || !sameSpec(known.object, object)) {
      this.#changed();
      this.#queue.add(key);
    }
  }

  #delete(key: string): void {
    if (this.#remotes.delete(key)) this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #checkAll(): void {
    for (const key of this.#remotes.keys()) this.#queue.add(key);
  }

  /** Services are followed from the first APIService that names one. */
  #watchServices(): void {
    if (this.#services !== undefined) return;
    const check = ({ metadata }: KubeObject): void => this.#checkThoseOf(metadata.namespace ?? "");
    const checkSlices = (slice: KubeObject): void => {
      this.#slicesOf = undefined;
      check(slice);
    };
    const handlerOf = (changed: (object: KubeObject) => void): InformerHandler => ({
      added: changed,
      updated: changed,
      deleted: changed,
    });
    this.#services = this.#informer("", "services", handlerOf(check));
    this.#slices = this.#informer("discovery.k8s.io", "endpointslices", handlerOf(checkSlices));
    this.#timer = this.#deps.clock.every(CHECK_PERIOD_MS, () => this.#checkAll());
  }

  #checkThoseOf(namespace: string): void {
    for (const [key, { spec }] of this.#remotes)
      if (spec.service?.namespace === namespace) this.#queue.add(key);
  }

  async #process(key: string): Promise<boolean> {
    await Promise.all([this.#services?.synced, this.#slices?.synced]);
    const remote = this.#remotes.get(key);
    if (remote === undefined) return true;
    const { spec } = remote;
    const { backends, clock, random } = this.#deps;
    const condition = await checkedAvailability(spec, {
      backends,
      clock,
      random,
      objects: this.#objects,
      options: this.#options,
    });
    const isAvailable = condition.status === "True";
    try {
      const { client } = this.#deps;
      const name = remote.object.metadata.name ?? "";
      await client.update({ ...API_SERVICES, subresource: "status" }, "", name, (present) => {
        const { status, reason, message } = availableConditionOf(present) ?? {};
        const isSame =
          status === condition.status &&
          reason === condition.reason &&
          message === condition.message;
        return isSame || !sameSpec(present, remote.object)
          ? undefined
          : withAvailable(present, condition);
      });
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
    if (isAvailable) await this.#read(key);
    else this.#update(key, { isCurrent: false });
    return isAvailable || condition.reason !== "FailedDiscoveryCheck";
  }

  /** Reads the server's documents, where that was a while ago. */
  async #read(key: string): Promise<void> {
    const remote = this.#remotes.get(key);
    const { backends, clock, logger } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (remote === undefined || nowMs - remote.readMs < DOCUMENTS_PERIOD_MS) return;
    const { spec } = remote;
    try {
      const place = backendPlace(spec, this.#addressOf(spec));
      const documents = await readDocuments(spec, place, backends, clock);
      this.#update(key, { ...documents, isCurrent: true, readMs: nowMs });
    } catch (error) {
      logger.warn("documents of an API service", { key, error: (error as Error).message });
      this.#update(key, { isCurrent: false });
    }
  }

  #update(key: string, change: Partial<Remote>): void {
    const remote = this.#remotes.get(key);
    if (remote === undefined) return;
    const next = { ...remote, ...change };
    this.#remotes.set(key, next);
    if (next.isCurrent !== remote.isCurrent || !sameDocuments(next, remote)) this.#changed();
  }

  #addressOf(spec: ApiServiceSpec): Address {
    const service = defined(spec.service, "the service");
    return placeOf(service, this.#objects, this.#options, this.#deps.random);
  }

  get #objects(): ServiceObjects {
    return {
      service: (namespace, name) => this.#services?.get(namespace, name),
      endpointSlices: (namespace, name) => {
        this.#slicesOf ??= Map.groupBy(
          this.#slices?.objects() ?? [],
          ({ metadata: { namespace: of = "", labels } }) =>
            `${of}/${labels?.["kubernetes.io/service-name"]}`,
        );
        return this.#slicesOf.get(`${namespace}/${name}`) ?? [];
      },
    };
  }

  #informer(group: string, resource: string, handler: InformerHandler): Informer {
    const { served, clock, random, logger } = this.#deps;
    const { storage } = defined(served.find(group, "v1", resource, ""), "the served resource");
    const informer = new Informer({ storage: storage as Lister & Watcher }, handler, {
      clock,
      random: random.fork(`informer ${resource}`),
      logger,
    });
    this.#informers.push(informer);
    informer.start();
    return informer;
  }
}

function keyOf({ group, version }: ApiServiceSpec): string {
  return `${group}/${version}`;
}

/**
 * APIServices of the groups and versions that this server serves itself (kube-aggregator:
 * pkg/controllers/autoregister, status/local; kubernetes: controller/crdregistration). A label says
 * who keeps one:
 *
 *     onstart   of a built-in group: written once, at the start
 *     true      of a definition's group: follows the definitions
 *     neither   somebody else's, and left alone
 */
import type { Clock, Logger } from "@quorate/host";
import { type KubeObject, metaTime, type ServedResources } from "@quorate/kube-storage";
import {
  apiServiceSpecOf,
  availableConditionOf,
  localCondition,
  sameSpec,
  withAvailable,
} from "../builtin/api-services.ts";
import { groupPriority, versionPriority } from "../builtin/group-priorities.ts";
import { WorkQueue } from "../controllers/work-queue.ts";
import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";

export const API_SERVICES = {
  group: "apiregistration.k8s.io",
  version: "v1",
  resource: "apiservices",
} as const satisfies ResourceRef;
const AUTO_MANAGED = "kube-aggregator.kubernetes.io/automanaged";
const ON_START = "onstart";
const ALWAYS = "true";
/** Groups and versions that wait for their APIServices; all are looked at again beyond it. */
export const MAX_LOCAL_SERVICES = 10_000;
/** Definitions that come together are looked at once. */
const PAUSE_MS = 50;

export interface LocalServicesDeps {
  /** The APIServices in the store. */
  readonly known: {
    get(namespace: string, name: string): KubeObject | undefined;
    objects(): Iterable<KubeObject>;
  };
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class LocalServices {
  readonly #deps: LocalServicesDeps;
  readonly #queue: WorkQueue<string>;
  #wanted: ReadonlyMap<string, KubeObject> = new Map();
  /** Names of the store at the start, and those of `onstart` that were written since. */
  #atStart: ReadonlySet<string> = new Set();
  readonly #written = new Set<string>();
  #forget = (): void => {};

  constructor(deps: LocalServicesDeps) {
    this.#deps = deps;
    this.#queue = new WorkQueue(
      {
        name: "local API services",
        concurrency: 5,
        maxKeys: MAX_LOCAL_SERVICES,
        process: (name) => this.#process(name),
        rescan: () => this.#look(),
      },
      deps.clock,
      deps.logger,
    );
  }

  /** Resolves when those of built-in groups are written. Called once, when `known` has synced. */
  async start(): Promise<void> {
    const { known, served, clock } = this.#deps;
    this.#atStart = new Set(Array.from(known.objects(), ({ metadata }) => metadata.name ?? ""));
    this.#wanted = this.#servedHere();
    const builtIn = [...this.#wanted].filter(([, object]) => managedBy(object) === ON_START);
    await Promise.all(builtIn.map(([name]) => this.#first(name)));
    this.#look();
    let isPending = false;
    this.#forget = served.onChange(() => {
      if (isPending) return;
      isPending = true;
      clock.after(PAUSE_MS, () => {
        isPending = false;
        this.#look();
      });
    });
  }

  stop(): void {
    this.#forget();
    this.#queue.stop();
  }

  /** An APIService came, changed or went. */
  observe({ metadata }: KubeObject): void {
    this.#queue.add(metadata.name ?? "");
  }

  async #first(name: string): Promise<void> {
    const isDone = await this.#process(name).catch(() => false);
    if (!isDone) this.#queue.add(name);
  }

  #look(): void {
    const before = this.#wanted;
    this.#wanted = this.#servedHere();
    const { known } = this.#deps;
    for (const name of new Set([...before.keys(), ...this.#wanted.keys()]))
      if (before.has(name) !== this.#wanted.has(name) || known.get("", name) === undefined)
        this.#queue.add(name);
    for (const object of known.objects())
      if (managedBy(object) !== "") this.#queue.add(object.metadata.name ?? "");
  }

  #servedHere(): Map<string, KubeObject> {
    const { served } = this.#deps;
    const wanted = new Map<string, KubeObject>();
    const managers = new Map<string, string>();
    for (const { group, version } of served.all()) {
      const name = `${version}.${group}`;
      if (group === API_SERVICES.group || wanted.has(name)) continue;
      let manager = managers.get(group);
      if (manager === undefined) {
        manager = served.hasBuiltIns(group) ? ON_START : ALWAYS;
        managers.set(group, manager);
      }
      wanted.set(name, apiServiceOf(group, version, manager));
    }
    return wanted;
  }

  async #process(name: string): Promise<boolean> {
    try {
      await this.#sync(name);
    } catch (error) {
      // What others wrote arrives, and is looked at then.
      if (!isNotFound(error) && !isConflict(error) && !isAlreadyExists(error)) throw error;
    }
    if (managedBy(this.#wanted.get(name)) === ON_START) this.#written.add(name);
    return true;
  }

  async #sync(name: string): Promise<void> {
    const { client, known } = this.#deps;
    const wanted = this.#wanted.get(name);
    const present = known.get("", name);
    if (present !== undefined) await this.#keepAvailable(name, present);
    if (managedBy(wanted) === ON_START && this.#written.has(name)) return;
    if (present === undefined) {
      if (wanted !== undefined) await client.create(API_SERVICES, "", wanted);
      return;
    }
    const manager = managedBy(present);
    if (manager === "" || (manager === ON_START && !this.#atStart.has(name))) return;
    if (wanted === undefined) {
      const { uid } = present.metadata;
      await client.delete(API_SERVICES, "", name, { preconditions: { uid } });
      return;
    }
    if (sameSpec(present, wanted)) return;
    const { spec } = wanted as KubeObject & { readonly spec: unknown };
    await client.update(API_SERVICES, "", name, (old) => ({ ...old, spec }));
  }

  /** One that names no service is available. */
  async #keepAvailable(name: string, present: KubeObject): Promise<void> {
    if (!isStale(present)) return;
    const { client, clock } = this.#deps;
    const condition = localCondition(metaTime(clock.wallMs()));
    await client.update({ ...API_SERVICES, subresource: "status" }, "", name, (old) =>
      isStale(old) ? withAvailable(old, condition) : undefined,
    );
  }
}

function isStale(object: KubeObject): boolean {
  if (apiServiceSpecOf(object).service !== undefined) return false;
  return availableConditionOf(object)?.reason !== localCondition("").reason;
}

/** ON_START, ALWAYS, or "" where it is somebody else's. */
function managedBy(object: KubeObject | undefined): string {
  const manager = object?.metadata.labels?.[AUTO_MANAGED] ?? "";
  return manager === ON_START || manager === ALWAYS ? manager : "";
}

function apiServiceOf(group: string, version: string, manager: string): KubeObject {
  return {
    apiVersion: `${API_SERVICES.group}/${API_SERVICES.version}`,
    kind: "APIService",
    metadata: { name: `${version}.${group}`, labels: { [AUTO_MANAGED]: manager } },
    spec: {
      ...(group === "" ? {} : { group }),
      version,
      groupPriorityMinimum: groupPriority({ group }),
      versionPriority: versionPriority({ group, version }),
    },
  };
}

/** Informers of all resources that the garbage collector looks at; they follow what is served. */

import type {
  KubeObject,
  Lister,
  ServedResource,
  ServedResources,
  Watcher,
} from "@quorate/kube-storage";
import { resourceName } from "@quorate/kube-storage";
import { Informer, type InformerDependencies } from "../informers/informer.ts";
import { systemContext } from "../informers/system-context.ts";
import type { GarbageCollector } from "./garbage-collector.ts";

/** Events have owners only in name, and there are many. */
const IGNORED = new Set(["events", "events.events.k8s.io"]);

interface Monitor {
  readonly informer: Informer;
  readonly storage: ServedResource["storage"];
}

export class GcMonitors {
  readonly #served: ServedResources;
  readonly #collector: GarbageCollector;
  readonly #dependencies: InformerDependencies;
  readonly #monitors = new Map<string, Monitor>();
  #unsubscribe: (() => void) | undefined;

  constructor(
    served: ServedResources,
    collector: GarbageCollector,
    dependencies: InformerDependencies,
  ) {
    this.#served = served;
    this.#collector = collector;
    this.#dependencies = dependencies;
  }

  /** Resolves when the objects of all resources are known. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#served.onChange(() => this.#sync());
    this.#sync();
    await Promise.all([...this.#monitors.values()].map(({ informer }) => informer.synced));
  }

  stop(): void {
    this.#unsubscribe?.();
    for (const { informer } of this.#monitors.values()) informer.stop();
    this.#monitors.clear();
  }

  #sync(): void {
    const wanted = new Map<string, ServedResource>();
    for (const resource of this.#served.all()) {
      const name = resourceName(resource);
      if (!wanted.has(name) && isMonitored(resource)) wanted.set(name, resource);
    }
    for (const [name, monitor] of this.#monitors) {
      if (wanted.get(name)?.storage === monitor.storage) continue;
      this.#monitors.delete(name);
      monitor.informer.stop();
      for (const object of monitor.informer.objects()) this.#collector.forget(object);
    }
    for (const [name, resource] of wanted) {
      if (!this.#monitors.has(name)) this.#begin(name, resource);
    }
  }

  #begin(name: string, { storage }: ServedResource): void {
    const informer = new Informer(
      { storage: storage as Lister & Watcher },
      (signal) => systemContext("", signal),
      {
        added: (object: KubeObject) => this.#collector.observe(object),
        updated: (object: KubeObject) => this.#collector.observe(object),
        deleted: (object: KubeObject) => this.#collector.remove(object),
      },
      this.#dependencies,
    );
    this.#monitors.set(name, { informer, storage });
    informer.start();
  }
}

function isMonitored(resource: ServedResource): boolean {
  const { storage, subresource } = resource;
  if (subresource !== "" || IGNORED.has(resourceName(resource))) return false;
  return storage.list !== undefined && storage.watch !== undefined && storage.delete !== undefined;
}

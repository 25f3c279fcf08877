/**
 * Serves what the definitions in the store say, and keeps their status (apiextensions-apiserver:
 * pkg/controller, customresource_handler.go). It follows a watch, so that all API servers of a
 * cluster serve the same; what they write to a status is the same, too.
 *
 *     created -> names compared -> served here -> Established -> ... -> Terminating
 *             -> instances deleted -> finalizer removed -> served no more
 */

import type { Clock, Logger, Random, Timer } from "@quorate/host";
import {
  ApiError,
  type KubeObject,
  type Lister,
  metaTime,
  parseTime,
  type RequestContext,
  type ServedResource,
  sameJson,
  textOf,
  type Updater,
  type Watcher,
  withMetadata,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { Informer, listOptions } from "../../informers/informer.ts";
import { systemContext } from "../../informers/system-context.ts";
import { type NewCondition, withCondition } from "../definition/conditions.ts";
import { CLEANUP_FINALIZER, type Crd, conditionOf, isConditionTrue } from "../definition/types.ts";
import { withComputedStatus, withEstablished } from "./computed-status.ts";
import { CustomResource, type CustomResourceDeps } from "./custom-resource.ts";

/** A definition that cannot be handled is tried again after this time. */
export const RETRY_MS = 1000;

export interface DefinitionOptions {
  /**
   * The time from the acceptance of names to Established, in which other API servers of the cluster
   * begin to serve the resource. 0 for a single one.
   */
  readonly establishDelayMs: number;
}

export interface DefinitionDeps {
  /** The resource "customresourcedefinitions" and its /status. */
  readonly definitions: Lister & Watcher;
  readonly status: Updater;
  readonly custom: CustomResourceDeps;
  /** Where served resources are registered. */
  readonly table: { set(owner: string, resources: readonly ServedResource[]): void };
  /** Whether a built-in resource has this name: its objects are not a definition's. */
  isBuiltIn(group: string, resource: string): boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What is served for a definition. */
interface Served {
  readonly crd: Crd;
  readonly resource: CustomResource;
}

export class DefinitionController {
  readonly #options: DefinitionOptions;
  readonly #deps: DefinitionDeps;
  readonly #informer: Informer;
  /** The latest definitions, from the watch or from a write. */
  readonly #known = new Map<string, Crd>();
  readonly #served = new Map<string, Served>();
  /** Names of definitions to look at. */
  readonly #queue = new Set<string>();
  readonly #timers = new Map<string, Timer>();
  #work: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: DefinitionOptions, deps: DefinitionDeps) {
    this.#options = options;
    this.#deps = deps;
    const handler = {
      added: (object: KubeObject) => this.#changed(object),
      updated: (object: KubeObject) => this.#changed(object),
      deleted: (object: KubeObject) => this.#deleted(object),
    };
    this.#informer = new Informer({ storage: deps.definitions }, handler, deps);
  }

  start(): void {
    this.#informer.start();
  }

  /** Resolves when the definitions that were in the store at the start are served. */
  async ready(): Promise<void> {
    await this.#informer.synced;
    while (this.#work !== undefined) await this.#work;
  }

  /** Ends the watch. Resources stay registered; their storages are closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#informer.stop();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.#work;
    await Promise.all([...this.#served.values()].map(({ resource }) => resource.close()));
    this.#served.clear();
  }

  #changed(object: KubeObject): void {
    const name = object.metadata.name ?? "";
    const known = this.#known.get(name);
    if (known === undefined || revisionOf(object) >= revisionOf(known)) {
      this.#keep(name, object as Crd);
    }
    this.#enqueue(name);
  }

  /** Most changes are of the status: the spec, which is large, is kept once. */
  #keep(name: string, crd: Crd): void {
    const before = this.#served.get(name)?.crd ?? this.#known.get(name);
    const isSame = before !== undefined && sameJson(before.spec, crd.spec);
    this.#known.set(name, isSame ? { ...crd, spec: before.spec } : crd);
  }

  #deleted(object: KubeObject): void {
    const name = object.metadata.name ?? "";
    this.#known.delete(name);
    this.#enqueue(name);
    this.#enqueueGroup((object as Crd).spec.group ?? "");
  }

  /** Names that a definition had are free: others of the group may have waited for them. */
  #enqueueGroup(group: string): void {
    for (const [name, crd] of this.#known) {
      if (crd.spec.group === group && !isConditionTrue(crd, "NamesAccepted")) this.#enqueue(name);
    }
  }

  #enqueue(name: string): void {
    if (this.#isStopped) return;
    this.#queue.add(name);
    this.#work ??= this.#run();
  }

  #later(name: string, delayMs: number): void {
    if (this.#isStopped || this.#timers.has(name)) return;
    const timer = this.#deps.clock.after(delayMs, () => {
      this.#timers.delete(name);
      this.#enqueue(name);
    });
    this.#timers.set(name, timer);
  }

  /** Handles definitions one by one: the comparison of names needs an order. */
  async #run(): Promise<void> {
    for (const name of this.#queue) {
      this.#queue.delete(name);
      if (this.#isStopped) break;
      try {
        await this.#handle(name);
      } catch (error) {
        const reason = textOf(error);
        this.#deps.logger.warn("a definition could not be handled", { definition: name, reason });
        this.#later(name, RETRY_MS);
      }
    }
    this.#work = undefined;
  }

  async #handle(name: string): Promise<void> {
    const crd = this.#known.get(name);
    if (crd === undefined) {
      await this.#unserve(name);
      return;
    }
    const accepted = withComputedStatus(crd, this.#groupOf(crd), this.#now());
    if (isConditionTrue(accepted, "NamesAccepted") || isConditionTrue(accepted, "Established")) {
      await this.#serve(name, accepted);
    }
    const complete = this.#established(name, accepted, crd);
    const present =
      complete === crd ? crd : await this.#write(name, (old) => this.#computed(name, old));
    if (present?.metadata.deletionTimestamp !== undefined) await this.#finalize(name, present);
  }

  #computed(name: string, old: Crd): Crd {
    const accepted = withComputedStatus(old, this.#groupOf(old), this.#now());
    return this.#established(name, accepted, old);
  }

  /** Established at once, or after the time in which other servers follow. */
  #established(name: string, accepted: Crd, stored: Crd): Crd {
    const { establishDelayMs } = this.#options;
    if (!isConditionTrue(accepted, "NamesAccepted") || isConditionTrue(accepted, "Established")) {
      return accepted;
    }
    if (establishDelayMs > 0) {
      const since = parseTime(conditionOf(stored, "NamesAccepted")?.lastTransitionTime);
      const nowMs = this.#deps.clock.wallMs();
      if (since === undefined || nowMs - since < establishDelayMs) {
        this.#later(name, establishDelayMs);
        return accepted;
      }
    }
    return withEstablished(accepted, this.#now());
  }

  *#groupOf(crd: Crd): Generator<Crd> {
    for (const other of this.#known.values()) if (other.spec.group === crd.spec.group) yield other;
  }

  #now(): string {
    return metaTime(this.#deps.clock.wallMs());
  }

  /** Opens the resource where the definition is new or changed. */
  async #serve(name: string, crd: Crd): Promise<void> {
    const before = this.#served.get(name);
    if (before !== undefined && isSameService(before.crd, crd)) return;
    const present = () => this.#known.get(name);
    const resource = await CustomResource.open(crd, present, this.#deps.custom);
    this.#served.set(name, { crd, resource });
    this.#deps.table.set(ownerOf(name), resource.served);
    await before?.resource.close();
  }

  async #unserve(name: string): Promise<void> {
    const before = this.#served.get(name);
    if (before === undefined) return;
    this.#served.delete(name);
    this.#deps.table.set(ownerOf(name), []);
    await before.resource.close();
  }

  /** Writes the status. Returns the definition; undefined where there is none any more. */
  async #write(name: string, change: (old: Crd) => Crd): Promise<Crd | undefined> {
    const { status } = this.#deps;
    const options = { dryRun: false, fieldManager: "", fieldValidation: "Ignore" } as const;
    const make = async (_ctx: RequestContext, old: KubeObject | undefined) => change(old as Crd);
    try {
      const ctx = systemContext();
      const { object } = await status.update(ctx, name, { make }, accept, accept, false, options);
      const known = this.#known.get(name);
      if (known !== undefined && revisionOf(object) > revisionOf(known)) {
        this.#keep(name, object as Crd);
      }
      return object as Crd;
    } catch (error) {
      if (error instanceof ApiError && error.httpStatus === 404) return undefined;
      throw error;
    }
  }

  /** Deletes the instances of a definition that is about to be deleted, then its finalizer. */
  async #finalize(name: string, crd: Crd): Promise<void> {
    if (!(crd.metadata.finalizers ?? []).includes(CLEANUP_FINALIZER)) return;
    const outcome = await this.#cleanUp(name, crd);
    if (outcome === "waiting") {
      this.#later(name, RETRY_MS);
      return;
    }
    await this.#write(name, (old) => {
      const finalizers = (old.metadata.finalizers ?? []).filter((one) => one !== CLEANUP_FINALIZER);
      const free = finalizers.length === 0 ? undefined : finalizers;
      const done = withCondition(old, outcome, this.#now());
      return withMetadata(done, { finalizers: free }) as Crd;
    });
  }

  async #cleanUp(name: string, crd: Crd): Promise<NewCondition | "waiting"> {
    const { group = "", names } = crd.spec;
    if (this.#deps.isBuiltIn(group, names?.plural ?? "")) {
      const message = "instances overlap with built-in resources in storage";
      return terminating("False", "OverlappingBuiltInResource", message);
    }
    if (!isConditionTrue(crd, "Established")) {
      return terminating("False", "NeverEstablished", "resource was never established");
    }
    const progress = terminating(
      "True",
      "InstanceDeletionInProgress",
      "CustomResource deletion is in progress",
    );
    await this.#write(name, (old) => withCondition(old, progress, this.#now()));
    try {
      const { instances } = defined(this.#served.get(name), "the served resource").resource;
      const ctx = systemContext();
      await instances.deleteCollection(ctx, accept, { dryRun: false }, listOptions({}));
      // Finalizers keep some, and others were created in between.
      const left = await instances.list(ctx, listOptions({ limit: 1 }));
      if (left.items.length > 0) return "waiting";
    } catch (error) {
      const reason = textOf(error);
      const failed = terminating(
        "True",
        "InstanceDeletionFailed",
        `could not issue all deletes: ${reason}`,
      );
      await this.#write(name, (old) => withCondition(old, failed, this.#now()));
      throw error;
    }
    return terminating("False", "InstanceDeletionCompleted", "removed all instances");
  }
}

function terminating(status: "True" | "False", reason: string, message: string): NewCondition {
  return { type: "Terminating", status, reason, message };
}

/** Admission has judged the deletion of the definition; its consequences pass. */
async function accept(): Promise<void> {}

function ownerOf(name: string): string {
  return `CustomResourceDefinition ${name}`;
}

function revisionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? 0);
}

/** Whether two forms of a definition serve the same. */
function isSameService(a: Crd, b: Crd): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    sameJson(a.spec, b.spec) &&
    sameJson(a.status?.acceptedNames, b.status?.acceptedNames)
  );
}

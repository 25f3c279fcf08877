/**
 * Deletes objects whose owners are gone (Kubernetes: pkg/controller/garbagecollector).
 *
 *     background   the owner goes at once; its dependents follow when their last owner is gone
 *     foreground   the owner waits, with the finalizer "foregroundDeletion", for those dependents
 *                  whose reference has blockOwnerDeletion
 *     orphan       dependents lose their references first; finalizer "orphan"
 *
 * A deletion is decided on what the store holds at that time, never on what informers say.
 */

import { type Clock, keepNewest, type Logger } from "@quorate/host";
import {
  FOREGROUND_FINALIZER,
  type KubeObject,
  ORPHAN_FINALIZER,
  type OwnerReference,
  type ServedResources,
} from "@quorate/kube-storage";
import { isConflict, type LocalClient } from "../informers/local-client.ts";
import { type Identity, identityOf, type Node, OwnerGraph } from "./gc-graph.ts";
import { GcObjects, unblocked, withoutFinalizer, withoutOwners } from "./gc-objects.ts";
import { WorkQueue } from "./work-queue.ts";

export const MAX_GC_KEYS = 200_000;
/** Owners that are known to be gone. */
export const MAX_ABSENT_OWNERS = 500;
const CONCURRENCY = 8;

export interface GarbageCollectorDependencies {
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Owners {
  readonly solid: OwnerReference[];
  readonly dangling: OwnerReference[];
  /** Their own deletion waits for this object. */
  readonly waiting: OwnerReference[];
}

export class GarbageCollector {
  readonly #objects: GcObjects;
  /** Of what informers see: who owns whom. */
  readonly graph: OwnerGraph;
  readonly #deletes: WorkQueue<string>;
  readonly #orphans: WorkQueue<string>;
  /** By uid and place: a uid alone may be a wrong reference's. */
  readonly #absent = new Set<string>();
  #isRunning = false;
  readonly #early = new Set<string>();

  constructor(deps: GarbageCollectorDependencies) {
    this.#objects = new GcObjects(deps.client, deps.served);
    const { clock, logger } = deps;
    const queue = (name: string, process: (uid: string) => Promise<boolean>) =>
      new WorkQueue<string>(
        {
          name,
          concurrency: CONCURRENCY,
          maxKeys: MAX_GC_KEYS,
          process: (uid) => settled(process(uid)),
          rescan: () => this.#rescan(),
        },
        clock,
        logger,
      );
    this.#deletes = queue("garbage: deletions", (uid) => this.#attemptDelete(uid));
    this.#orphans = queue("garbage: orphans", (uid) => this.#attemptOrphan(uid));
    this.graph = new OwnerGraph({
      attemptDelete: ({ identity }) => this.#add(this.#deletes, identity.uid),
      attemptOrphan: ({ identity }) => this.#add(this.#orphans, identity.uid),
      absent: (identity) => this.#remember(placeOf(identity)),
    });
  }

  /** Whether work waits that no pause holds up. */
  get isBusy(): boolean {
    return this.#deletes.isBusy || this.#orphans.isBusy;
  }

  /** Begins to delete. Called when all informers have synced: before, owners seem to be absent. */
  run(): void {
    this.#isRunning = true;
    this.#rescan();
  }

  stop(): void {
    this.#isRunning = false;
    this.#deletes.stop();
    this.#orphans.stop();
  }

  #add(queue: WorkQueue<string>, uid: string): void {
    if (this.#isRunning) queue.add(uid);
    else if (this.#early.size < MAX_GC_KEYS) this.#early.add(uid);
  }

  /** All nodes for which there may be something to do. */
  #rescan(): void {
    this.#early.clear();
    for (const node of this.graph.nodes()) {
      const { uid } = node.identity;
      if (node.isVirtual || node.isDeletingDependents) this.#deletes.add(uid);
      else if (node.owners.some((owner) => this.#isUncertain(owner))) this.#deletes.add(uid);
      if (node.isBeingDeleted && !node.isDeletingDependents) this.#orphans.add(uid);
    }
  }

  #isUncertain({ uid, kind, name }: OwnerReference): boolean {
    const owner = this.graph.get(uid);
    if (owner === undefined) return true;
    return !owner.isVirtual && (owner.identity.kind !== kind || owner.identity.name !== name);
  }

  #remember(place: string): void {
    this.#absent.delete(place);
    this.#absent.add(place);
    keepNewest(this.#absent, MAX_ABSENT_OWNERS);
  }

  async #attemptDelete(uid: string): Promise<boolean> {
    const node = this.graph.get(uid);
    if (node === undefined) return true;
    if (node.isBeingDeleted && !node.isDeletingDependents) return true;
    if (!node.isVirtual && node.owners.length === 0 && !node.isDeletingDependents) return true;
    const latest = await this.#objects.get(node.identity);
    if (latest === "unknown-kind") return false;
    if (latest === "namespaced-owner") return true;
    if (latest === "absent") {
      // Of a virtual owner only the first reference may be wrong; each dependent's own look-up
      // decides.
      this.graph.remove(uid);
      return true;
    }
    if (node.isVirtual) return true;
    if (node.isDeletingDependents) return this.#deleteDependents(node, latest);
    return this.#judge(node, latest);
  }

  /** A foreground deletion: ends it, or deletes the dependents that block it. */
  async #deleteDependents(node: Node, latest: KubeObject): Promise<boolean> {
    const { uid } = node.identity;
    const blocking = [...node.dependents].filter(({ owners }) =>
      owners.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true),
    );
    if (blocking.length === 0) {
      await this.#objects.update(identityOf(latest), (it) =>
        withoutFinalizer(it, FOREGROUND_FINALIZER),
      );
      return true;
    }
    for (const dependent of blocking) {
      if (!dependent.isDeletingDependents) this.#deletes.add(dependent.identity.uid);
    }
    return true;
  }

  async #judge(node: Node, latest: KubeObject): Promise<boolean> {
    const references = latest.metadata.ownerReferences ?? [];
    if (references.length === 0) return true;
    const owners = await this.#classify(references, latest.metadata.namespace ?? "");
    if (owners === undefined) return true;
    if (owners === "unknown-kind") return false;
    const { solid, dangling, waiting } = owners;
    if (solid.length > 0) {
      const gone = new Set([...dangling, ...waiting].map(({ uid }) => uid));
      if (gone.size > 0)
        await this.#objects.update(identityOf(latest), (it) => withoutOwners(it, gone));
      return true;
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      // In a circle of foreground deletions each would wait for the other.
      if ([...node.dependents].some(({ isDeletingDependents }) => isDeletingDependents)) {
        await this.#objects.update(identityOf(latest), unblocked);
        return this.#deleteNow(node, "Foreground");
      }
      await this.#objects.delete(latest, "Foreground");
      return true;
    }
    await this.#objects.delete(latest, policyOf(latest));
    return true;
  }

  /** After a change of the object, with its present revision. */
  async #deleteNow(node: Node, policy: "Foreground"): Promise<boolean> {
    const present = await this.#objects.get(node.identity);
    if (typeof present === "string") return true;
    await this.#objects.delete(present, policy);
    return true;
  }

  /** Undefined: the references are not valid, and nothing is done about the object. */
  async #classify(
    references: readonly OwnerReference[],
    namespace: string,
  ): Promise<Owners | "unknown-kind" | undefined> {
    const owners: Owners = { solid: [], dangling: [], waiting: [] };
    for (const reference of references) {
      if (this.#isAbsent(reference, namespace)) {
        owners.dangling.push(reference);
        continue;
      }
      const owner = await this.#objects.owner(reference, namespace);
      if (owner === "namespaced-owner") return undefined;
      if (owner === "unknown-kind") return "unknown-kind";
      if (owner === "absent") owners.dangling.push(reference);
      else if (isWaiting(owner)) owners.waiting.push(reference);
      else owners.solid.push(reference);
    }
    return owners;
  }

  #isAbsent({ uid, kind, name }: OwnerReference, namespace: string): boolean {
    if (this.graph.get(uid) !== undefined) return false;
    const isKnown = (of: string): boolean =>
      this.#absent.has(placeOf({ uid, kind, name, namespace: of }));
    return isKnown(namespace) || isKnown("");
  }

  async #attemptOrphan(uid: string): Promise<boolean> {
    const node = this.graph.get(uid);
    if (node === undefined || node.isVirtual) return true;
    const latest = await this.#objects.get(node.identity);
    if (typeof latest === "string") return true;
    if (!(latest.metadata.finalizers ?? []).includes(ORPHAN_FINALIZER)) return true;
    const owner = new Set([uid]);
    for (const { identity } of [...node.dependents]) {
      await this.#objects.update(identity, (it) => withoutOwners(it, owner));
    }
    await this.#objects.update(node.identity, (it) => withoutFinalizer(it, ORPHAN_FINALIZER));
    return true;
  }
}

/** A uid alone does not say that its object is gone: a reference may have a wrong name. */
function placeOf({ uid, kind, name, namespace }: Omit<Identity, "apiVersion">): string {
  return `${uid}/${kind}/${namespace}/${name}`;
}

/** A conflict is no failure to report: the next attempt sees the new state. */
async function settled(work: Promise<boolean>): Promise<boolean> {
  try {
    return await work;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

function isWaiting({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers ?? []).includes(FOREGROUND_FINALIZER)
  );
}

function policyOf({ metadata }: KubeObject): "Orphan" | "Foreground" | "Background" {
  const finalizers = metadata.finalizers ?? [];
  if (finalizers.includes(ORPHAN_FINALIZER)) return "Orphan";
  return finalizers.includes(FOREGROUND_FINALIZER) ? "Foreground" : "Background";
}

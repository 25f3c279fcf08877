/**
 * Which object owns which (Kubernetes: pkg/controller/garbagecollector/graph*.go). Nodes are
 * objects as informers see them, and owners that no informer has shown yet ("virtual"). GcMonitors
 * are those informers.
 */
import {
  FOREGROUND_FINALIZER,
  type KubeObject,
  type Lister,
  ORPHAN_FINALIZER,
  type OwnerReference,
  resourceName,
  type ServedResource,
  type ServedResources,
  type Watcher,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { Informer, type InformerDependencies } from "../informers/informer.ts";

/** Where an object is. */
export interface Identity {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface Node {
  identity: Identity;
  owners: readonly OwnerReference[];
  /** Most objects have none, and share the empty set. */
  dependents: ReadonlySet<Node>;
  /** Known only from a dependent's reference. */
  isVirtual: boolean;
  isBeingDeleted: boolean;
  /** Its foreground deletion has begun. */
  isDeletingDependents: boolean;
}

const NONE: ReadonlySet<Node> = new Set();

/** What a change makes necessary. */
export interface GraphListener {
  /** The object may have no owner any more, or waits for its dependents. */
  attemptDelete(node: Node): void;
  /** The object's dependents shall lose their references to it. */
  attemptOrphan(node: Node): void;
  /** An object is gone for good. */
  absent(identity: Identity): void;
}

export class OwnerGraph {
  readonly #nodes = new Map<string, Node>();
  readonly #listener: GraphListener;

  constructor(listener: GraphListener) {
    this.#listener = listener;
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(uid: string): Node | undefined {
    return this.#nodes.get(uid);
  }

  nodes(): IterableIterator<Node> {
    return this.#nodes.values();
  }

  /** An object is there, new or changed. */
  observe(object: KubeObject): void {
    const identity = identityOf(object);
    const owners = object.metadata.ownerReferences ?? [];
    const known = this.#nodes.get(identity.uid);
    const node = known ?? this.#insert(identity, false);
    const before = known === undefined || known.isVirtual ? [] : node.owners;
    if (node.isVirtual && !isSamePlace(node.identity, identity)) this.#recheck(node);
    node.identity = identity;
    node.isVirtual = false;
    node.owners = owners;
    this.#link(node, before, owners);
    this.#transitions(node, object);
  }

  /** An object is gone. */
  remove(uid: string): void {
    const node = this.#nodes.get(uid);
    if (node === undefined) return;
    this.#nodes.delete(uid);
    this.#unlink(node, node.owners);
    if (node.dependents.size > 0) this.#listener.absent(node.identity);
    for (const dependent of node.dependents) this.#listener.attemptDelete(dependent);
    this.#wakeWaitingOwners(node.owners);
  }

  /** A resource is served no more: its objects are unknown now, not deleted. */
  forget(uid: string): void {
    const node = this.#nodes.get(uid);
    if (node === undefined) return;
    this.#unlink(node, node.owners);
    node.owners = [];
    if (node.dependents.size === 0) this.#nodes.delete(uid);
    else node.isVirtual = true;
  }

  #insert(identity: Identity, isVirtual: boolean): Node {
    const node: Node = {
      identity,
      owners: [],
      dependents: NONE,
      isVirtual,
      isBeingDeleted: false,
      isDeletingDependents: false,
    };
    this.#nodes.set(identity.uid, node);
    return node;
  }

  #link(node: Node, before: readonly OwnerReference[], after: readonly OwnerReference[]): void {
    const afterByUid = Map.groupBy(after, ({ uid }) => uid);
    const beforeUids = new Set(before.map(({ uid }) => uid));
    const removed = before.filter(({ uid }) => !afterByUid.has(uid));
    const changed = before.filter(({ uid, blockOwnerDeletion }) =>
      afterByUid.get(uid)?.some((one) => one.blockOwnerDeletion !== blockOwnerDeletion),
    );
    this.#wakeWaitingOwners([...removed, ...changed]);
    this.#unlink(node, removed);
    for (const reference of after) {
      const owner = this.#nodes.get(reference.uid) ?? this.#virtualOwner(reference, node.identity);
      addDependent(owner, node);
    }
    const added = after.filter(({ uid }) => !beforeUids.has(uid));
    if (added.some((reference) => this.#isDoubtful(reference, node.identity))) {
      this.#listener.attemptDelete(node);
    }
    for (const { uid } of added) {
      const owner = this.#nodes.get(uid);
      if (owner?.isDeletingDependents) this.#listener.attemptDelete(owner);
    }
  }

  /** The owner is to be found out about, unless an informer shows it first. */
  #virtualOwner(reference: OwnerReference, dependent: Identity): Node {
    const { apiVersion, kind, name, uid } = reference;
    const { namespace } = dependent;
    const owner = this.#insert({ apiVersion, kind, namespace, name, uid }, true);
    this.#listener.attemptDelete(owner);
    return owner;
  }

  /** The owner is known in another place than the reference says: only a look-up decides. */
  #isDoubtful({ uid, kind, name }: OwnerReference, { namespace }: Identity): boolean {
    const { identity } = defined(this.#nodes.get(uid), "the node");
    if (identity.kind !== kind || identity.name !== name) return true;
    return identity.namespace !== "" && identity.namespace !== namespace;
  }

  #recheck(node: Node): void {
    for (const dependent of node.dependents) this.#listener.attemptDelete(dependent);
  }

  #unlink(node: Node, owners: readonly OwnerReference[]): void {
    for (const { uid } of owners) {
      const owner = this.#nodes.get(uid);
      if (owner === undefined) continue;
      removeDependent(owner, node);
      if (owner.isVirtual && owner.dependents.size === 0) this.#nodes.delete(uid);
    }
  }

  #wakeWaitingOwners(owners: readonly OwnerReference[]): void {
    for (const { uid } of owners) {
      const owner = this.#nodes.get(uid);
      if (owner?.isDeletingDependents) this.#listener.attemptDelete(owner);
    }
  }

  #transitions(node: Node, { metadata }: KubeObject): void {
    if (metadata.deletionTimestamp === undefined) return;
    node.isBeingDeleted = true;
    const finalizers = metadata.finalizers ?? [];
    if (finalizers.includes(ORPHAN_FINALIZER)) this.#listener.attemptOrphan(node);
    if (!finalizers.includes(FOREGROUND_FINALIZER) || node.isDeletingDependents) return;
    node.isDeletingDependents = true;
    for (const dependent of node.dependents) this.#listener.attemptDelete(dependent);
    this.#listener.attemptDelete(node);
  }
}

function addDependent(owner: Node, node: Node): void {
  if (owner.dependents === NONE) owner.dependents = new Set();
  (owner.dependents as Set<Node>).add(node);
}

function removeDependent(owner: Node, node: Node): void {
  if (owner.dependents !== NONE) (owner.dependents as Set<Node>).delete(node);
}

export function identityOf({ apiVersion, kind, metadata }: KubeObject): Identity {
  const { namespace = "", name = "", uid = "" } = metadata;
  return { apiVersion, kind, namespace, name, uid };
}

function isSamePlace(a: Identity, b: Identity): boolean {
  return (
    a.kind === b.kind && a.name === b.name && (b.namespace === "" || a.namespace === b.namespace)
  );
}

/** Events have owners only in name, and there are many. */
const IGNORED = new Set(["events", "events.events.k8s.io"]);

interface Monitor {
  readonly informer: Informer;
  readonly storage: ServedResource["storage"];
}

/** Informers of all resources that the garbage collector looks at; they follow what is served. */
export class GcMonitors {
  readonly #served: ServedResources;
  readonly #graph: OwnerGraph;
  readonly #dependencies: InformerDependencies;
  readonly #monitors = new Map<string, Monitor>();
  #unsubscribe: (() => void) | undefined;

  constructor(served: ServedResources, graph: OwnerGraph, dependencies: InformerDependencies) {
    this.#served = served;
    this.#graph = graph;
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
      for (const object of monitor.informer.objects())
        this.#graph.forget(object.metadata.uid ?? "");
    }
    for (const [name, resource] of wanted) {
      if (!this.#monitors.has(name)) this.#begin(name, resource);
    }
  }

  #begin(name: string, { storage }: ServedResource): void {
    const informer = new Informer(
      { storage: storage as Lister & Watcher },
      {
        added: (object: KubeObject) => this.#graph.observe(object),
        updated: (object: KubeObject) => this.#graph.observe(object),
        deleted: (object: KubeObject) => this.#graph.remove(object.metadata.uid ?? ""),
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

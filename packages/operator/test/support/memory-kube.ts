/** An API server in memory, with as much of its rules as the operator meets. */
import { type Kind, type Kube, KubeError, type KubeObject, type MergePatch } from "../../index.ts";

type Fields = Record<string, unknown>;

function merged(old: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const isRecord = typeof old === "object" && old !== null && !Array.isArray(old);
  const result: Fields = isRecord ? { ...(old as Fields) } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

const idOf = (kind: string, namespace: string, name: string): string =>
  `${kind}/${namespace}/${name}`;

interface Watcher {
  readonly kind: Kind;
  readonly namespace: string;
  changed(object: KubeObject): void;
  lost(error: unknown): void;
}

export class MemoryKube implements Kube {
  readonly watchers = new Set<Watcher>();
  readonly objects = new Map<string, KubeObject>();
  /** Called before and after each call: it may throw, as if the caller were killed there. */
  around: (call: string, moment: "before" | "after") => void = () => {};
  /** Kinds of others that are not served. */
  readonly unserved = new Set<Kind>(["PodMonitor", "Certificate"]);
  readonly #nowMs: () => number;
  #version = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  all<T extends KubeObject>(kind: Kind): T[] {
    return [...this.objects.values()].filter((one) => one.kind === kind) as T[];
  }

  find<T extends KubeObject>(kind: Kind, name: string): T | undefined {
    return this.objects.get(idOf(kind, "ns", name)) as T | undefined;
  }

  /** Writes an object as it is, with a new version. */
  put(object: KubeObject): void {
    const { namespace = "", name } = object.metadata;
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    const stored = { ...object, metadata };
    this.objects.set(idOf(object.kind, namespace, name), stored);
    for (const watcher of this.watchers) {
      const isIn = watcher.namespace === "" || watcher.namespace === namespace;
      if (watcher.kind === object.kind && isIn) watcher.changed(stored);
    }
  }

  /** Takes an object out at once, whatever holds it. */
  drop({ kind, metadata }: KubeObject): void {
    this.objects.delete(idOf(kind, metadata.namespace ?? "", metadata.name));
  }

  async list<T extends KubeObject>(kind: Kind, namespace: string, labels: string): Promise<T[]> {
    return this.#call(`list ${kind}`, () => {
      if (this.unserved.has(kind)) throw new KubeError(404, "NotFound", "no such resource");
      const wanted = labels === "" ? [] : labels.split(",").map((one) => one.split("="));
      const fits = ({ metadata }: KubeObject): boolean =>
        (namespace === "" || metadata.namespace === namespace) &&
        wanted.every(([name, value]) => metadata.labels?.[name] === value);
      return this.all<T>(kind).filter(fits);
    });
  }

  async get<T extends KubeObject>(kind: Kind, namespace: string, name: string) {
    return this.#call(`get ${kind}`, () => {
      return this.objects.get(idOf(kind, namespace, name)) as T | undefined;
    });
  }

  async create(object: KubeObject): Promise<void> {
    this.#call(`create ${object.kind}`, () => {
      const { namespace = "", name } = object.metadata;
      if (this.objects.has(idOf(object.kind, namespace, name)))
        throw new KubeError(409, "AlreadyExists", `${name} is there`);
      const uid = `uid-${++this.#version}`;
      const creationTimestamp = new Date(this.#nowMs()).toISOString();
      const metadata = { ...object.metadata, uid, creationTimestamp, generation: 1 };
      this.put({ ...object, metadata });
    });
  }

  async patch(
    kind: Kind,
    namespace: string,
    name: string,
    patch: MergePatch,
    subresource: "" | "status",
  ): Promise<void> {
    this.#call(`patch ${kind} ${subresource}`, () => {
      const old = this.objects.get(idOf(kind, namespace, name));
      if (old === undefined) throw new KubeError(404, "NotFound", `${name} is not there`);
      const { metadata = {} } = patch as { metadata?: Fields };
      const version = metadata["resourceVersion"];
      if (version !== undefined && version !== old.metadata.resourceVersion)
        throw new KubeError(409, "Conflict", `${name} has changed`);
      const fields = subresource === "status" ? { status: patch["status"] } : patch;
      const next = merged(old, fields) as KubeObject;
      const isSpec = JSON.stringify(next.spec) !== JSON.stringify(old.spec);
      const generation = (old.metadata.generation ?? 0) + Number(isSpec);
      this.put({ ...next, metadata: { ...next.metadata, generation } });
    });
  }

  async remove(kind: Kind, namespace: string, name: string, uid: string): Promise<void> {
    this.#call(`remove ${kind}`, () => {
      const found = this.objects.get(idOf(kind, namespace, name));
      if (found === undefined || found.metadata.uid !== uid) return;
      const deletionTimestamp = new Date(this.#nowMs()).toISOString();
      this.put({ ...found, metadata: { ...found.metadata, deletionTimestamp } });
      const isHeld = kind === "Pod" || (kind === "PersistentVolumeClaim" && this.#isMounted(name));
      if (!isHeld) this.drop(found);
    });
  }

  /** Removes claims that are to go and that no pod holds any more. */
  release(): void {
    for (const claim of this.all("PersistentVolumeClaim")) {
      const { deletionTimestamp, name } = claim.metadata;
      if (deletionTimestamp !== undefined && !this.#isMounted(name)) this.drop(claim);
    }
  }

  watch(
    kind: Kind,
    namespace: string,
    changed: (object: KubeObject) => void,
    lost: (error: unknown) => void,
  ): () => void {
    const watcher = { kind, namespace, changed, lost };
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  #isMounted(claim: string): boolean {
    return this.all("Pod").some(({ metadata }) => metadata.name === claim);
  }

  #call<T>(call: string, task: () => T): T {
    this.around(call, "before");
    const result = task();
    this.around(call, "after");
    return result;
  }
}

/**
 * Who manages which fields of the objects of one kind, for all writes (apimachinery:
 * util/managedfields/internal). The managers of Kubernetes' chain are steps here:
 *
 *     update: managedFields of the request or the present object, reset, update, strip, merge with
 *             the manager's earlier entry, cap
 *     apply:  kind, managedFields, entry for what was there before the first apply, apply, strip,
 *             upgrade from client-side apply
 */
import { type Clock, Pauses } from "@quorate/host";
import {
  ApiError,
  apiVersionOf,
  badRequest,
  compareUtf8,
  type GroupVersionKind,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  textOf as messageOf,
  type ObjectSchema,
  parseApiVersion,
  type Schema,
  type ServedResource,
  type ServedResources,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { ConflictsError, conflictError } from "./apply-conflict.ts";
import {
  differenceOf,
  EMPTY_SET,
  FieldSetBuilder,
  fieldSetFromJson,
  fieldSetOf,
  isEmptySet,
  unionOf,
} from "./field-set.ts";
import { allowedConflicts, withLastApplied } from "./last-applied.ts";
import {
  decodeManagedFields,
  encodeManagedFields,
  type Managed,
  managerId,
  NOTHING_MANAGED,
  secondsOf,
  type VersionedSet,
} from "./managed-fields.ts";
import { checkDepth } from "./patch-limits.ts";
import { type TypeAtom, typeOfObject } from "./typed-schema.ts";
import { type Fields, isMap, TypedError, validateTyped } from "./typed-value.ts";
import { FieldsUpdater, type Versions } from "./updater.ts";

export interface FieldManagerOptions {
  readonly kind: GroupVersionKind;
  /** Undefined: types are deduced from the values. */
  readonly schema: ObjectSchema | undefined;
  /** Fields that no manager owns, as fieldsV1, in all versions (Strategy.resetFields). */
  readonly resetFields?: Readonly<Record<string, unknown>> | undefined;
  /** The object that a create is compared with; by default one without fields. */
  readonly empty?: KubeObject | undefined;
  /** Sets defaults after an apply. May return the same object. */
  readonly setDefaults?: (object: KubeObject) => KubeObject;
  /** Lets other work run between the steps of a long write. Absent: a write is one turn. */
  readonly clock?: Pick<Clock, "turns">;
  /** Absent: there is one version, and entries of others are dropped. */
  readonly versions?: {
    /** Undefined where the version is not served. */
    schemaOf(apiVersion: string): ObjectSchema | undefined;
    convert(object: KubeObject, apiVersion: string): Promise<KubeObject>;
  };
}

/** Fields that never have a manager. */
const STRIPPED = fieldSetOf(
  ["f:apiVersion"],
  ["f:kind"],
  ["f:metadata"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["f:metadata", `f:${name}`]),
);

/** What an update does under until its manager's earlier entry is known. */
const CURRENT = "current-operation";

/**
 * Who manages which fields of one kind in one version. Entries of other versions need a conversion,
 * which may be a webhook; so both methods are asynchronous. Neither changes its arguments.
 */
export class FieldManager {
  readonly #options: FieldManagerOptions;
  readonly #apiVersion: string;
  readonly #versions: Versions;
  /** The type of its own version. */
  readonly #own: TypeAtom;
  readonly #empty: KubeObject;

  constructor(options: FieldManagerOptions) {
    const { kind, versions } = options;
    const apiVersion = apiVersionOf(kind);
    const own = typeOfObject(options.schema);
    const { resetFields } = options;
    const reset =
      resetFields === undefined ? undefined : fieldSetFromJson(resetFields as JsonObject);
    this.#options = options;
    this.#own = own;
    this.#apiVersion = apiVersion;
    this.#empty = options.empty ?? { apiVersion, kind: kind.kind, metadata: {} };
    this.#versions = {
      typeOf: (version) => {
        if (version === apiVersion) return own;
        const schema = versions?.schemaOf(version);
        return schema === undefined ? undefined : typeOfObject(schema);
      },
      convert: (object, version) => defined(versions, "the versions").convert(object, version),
      resetFields: reset,
    };
  }

  /**
   * managedFields after a create, update or patch by `manager`: what the request changed is its own.
   * Where managedFields of `object` are empty, those of `old` count; an empty list resets them.
   * Never rejects because of the object: if it does not fit its schema, the result has no
   * managedFields.
   * @param old undefined for a create
   * @param manager the option fieldManager, or the one from the User-Agent (write-options.ts)
   */
  async update(
    old: KubeObject | undefined,
    object: KubeObject,
    manager: string,
    subresource: string,
    nowMs: number,
  ): Promise<KubeObject> {
    const managed = managedOfWrite(old, object, subresource !== "");
    const bare = withManaged(object, undefined);
    const isCreate = !old?.metadata.uid;
    // Objects from before the first tracked write stay untracked until they are applied.
    if (managed.managers.size === 0 && !isCreate) return bare;
    try {
      const live = withManaged(old ?? this.#empty, undefined);
      const id = this.#idOf(manager, "Update", subresource);
      const slices = this.#slices();
      return withManaged(bare, await this.#tracked(live, bare, managed, id, nowMs, slices));
    } catch (error) {
      if (error instanceof TypedError || error instanceof ApiError) return bare;
      throw error;
    }
  }

  /**
   * Server-side apply. Rejects with ApiError 409 with a cause for each conflict unless `force`, 400
   * for an object of another kind or with managedFields, 500 for one that does not fit its schema
   * (as Kubernetes does).
   * @param present undefined where there is no object
   * @param applied the client's object as it is: neither pruned nor defaulted
   * @returns the merged object, defaulted
   */
  async apply(
    present: KubeObject | undefined,
    applied: KubeObject,
    manager: string,
    subresource: string,
    force: boolean,
    nowMs: number,
  ): Promise<KubeObject> {
    this.#checkKind(applied);
    checkDepth(applied);
    const live = present ?? this.#empty;
    const managed = managedOf(live);
    const run = (forced: boolean): Promise<KubeObject> =>
      this.#apply(
        withManaged(live, undefined),
        applied,
        managed,
        manager,
        subresource,
        forced,
        nowMs,
      );
    const object = await this.#applyOrUpgrade(run, live, manager, force).catch(toApiError);
    return manager === "kubectl" ? withLastApplied(object, applied) : object;
  }

  #checkKind(applied: KubeObject): void {
    const { kind } = this.#options;
    if (applied.apiVersion !== this.#apiVersion || applied.kind !== kind.kind) {
      throw badRequest(`invalid object type: ${shownKind(applied)}`);
    }
    if (Array.isArray(applied.metadata?.managedFields)) {
      throw badRequest("metadata.managedFields must be nil");
    }
  }

  /** kubectl takes over fields that it applied on the client's side, without conflicts. */
  async #applyOrUpgrade(
    run: (force: boolean) => Promise<KubeObject>,
    live: KubeObject,
    manager: string,
    force: boolean,
  ): Promise<KubeObject> {
    try {
      return await run(force);
    } catch (error) {
      if (manager !== "kubectl" || !(error instanceof ConflictsError)) throw error;
      const type = this.#own;
      const left = allowedConflicts(type, live, this.#apiVersion, error.conflicts);
      if (left.length > 0) throw new ConflictsError(left);
      return run(true);
    }
  }

  async #apply(
    live: KubeObject,
    applied: KubeObject,
    present: Managed,
    manager: string,
    subresource: string,
    force: boolean,
    nowMs: number,
  ): Promise<KubeObject> {
    const slices = this.#slices();
    let managed = present;
    if (managed.managers.size === 0) {
      const before = this.#idOf("before-first-apply", "Update", subresource);
      managed = await this.#tracked(this.#empty, live, managed, before, nowMs, slices);
    }
    this.#check("create typed patch object", applied, false);
    await slices?.next();
    this.#check("create typed live object", live, true);
    await slices?.next();
    const id = this.#idOf(manager, "Apply", subresource);
    const updater = new FieldsUpdater(this.#versions, this.#apiVersion, slices);
    const [merged, after] = await updater.apply(live, applied, managed.managers, id, force);
    await slices?.next();
    strip(after, id);
    const times = new Map(managed.times);
    if (merged !== undefined) times.set(id, timeText(nowMs));
    const object = merged === undefined ? live : this.#withDefaults(merged);
    return withManaged(object, { managers: after, times });
  }

  #slices(): Pauses | undefined {
    const { clock } = this.#options;
    return clock && new Pauses(clock.turns);
  }

  #withDefaults(object: KubeObject): KubeObject {
    return this.#options.setDefaults?.(object) ?? object;
  }

  /** What is managed after a write that is no apply. */
  async #tracked(
    live: KubeObject,
    object: KubeObject,
    managed: Managed,
    id: string,
    nowMs: number,
    slices: Pauses | undefined,
  ): Promise<Managed> {
    this.#check("convert new object", object, true);
    await slices?.next();
    this.#check("convert live object", live, true);
    await slices?.next();
    const updater = new FieldsUpdater(this.#versions, this.#apiVersion, slices);
    const after = await updater.update(live, object, managed.managers, CURRENT);
    strip(after, CURRENT);
    const times = new Map(managed.times);
    const own = after.get(CURRENT);
    if (own !== undefined) {
      after.delete(CURRENT);
      const earlier = after.get(id);
      const set = earlier === undefined ? own.set : unionOf(own.set, earlier.set);
      after.set(id, { ...own, set });
      times.set(id, timeText(nowMs));
    }
    return capUpdateManagers({ managers: after, times });
  }

  #check(what: string, object: KubeObject, allowDuplicates: boolean): void {
    try {
      validateTyped(this.#own, object, allowDuplicates);
    } catch (error) {
      if (!(error instanceof TypedError)) throw error;
      throw new TypedError(`failed to ${what} (${describe(object)}): ${error.message}`);
    }
  }

  #idOf(manager: string, operation: "Apply" | "Update", subresource: string): string {
    const apiVersion = this.#apiVersion;
    return managerId({ manager: manager || "unknown", operation, apiVersion, subresource });
  }
}

/** The managed fields that a write starts from. */
function managedOfWrite(
  old: KubeObject | undefined,
  object: KubeObject,
  ignoreRequest: boolean,
): Managed {
  if (!ignoreRequest) {
    const requested = object.metadata.managedFields;
    if (isReset(requested)) return NOTHING_MANAGED;
    const managed = decodeOrNothing(requested);
    if (managed.managers.size > 0) return managed;
  }
  return decodeOrNothing(old?.metadata.managedFields);
}

function decodeOrNothing(entries: readonly ManagedFieldsEntry[] | undefined): Managed {
  try {
    return decodeManagedFields(entries ?? []);
  } catch {
    // Malformed entries count as none: the owners of the object start from here.
    return NOTHING_MANAGED;
  }
}

/** A client removes all managers by an empty list, or by a list with one empty entry. */
function isReset(entries: readonly ManagedFieldsEntry[] | null | undefined): boolean {
  if (!entries) return false;
  const [first, second] = entries;
  return first === undefined || (second === undefined && Object.keys(first).length === 0);
}

function managedOf(live: KubeObject): Managed {
  try {
    return decodeManagedFields(live.metadata.managedFields ?? []);
  } catch (error) {
    const why = messageOf(error);
    throw new ApiError(500, "", `failed to decode managed fields: ${why}`);
  }
}

function strip(managers: Map<string, VersionedSet>, id: string): void {
  const versioned = managers.get(id);
  if (versioned === undefined) return;
  const set = differenceOf(versioned.set, STRIPPED);
  if (isEmptySet(set)) managers.delete(id);
  else managers.set(id, { ...versioned, set });
}

/** The object with these managed fields; the same one if it has none and gets none. */
function withManaged(object: KubeObject, managed: Managed | undefined): KubeObject {
  const entries = managed === undefined ? undefined : encodeManagedFields(managed);
  if (entries === undefined && object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  const changed = entries === undefined ? metadata : { ...metadata, managedFields: entries };
  return { ...object, metadata: changed };
}

function timeText(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

/** "default/app; /v1, Kind=ConfigMap", as errors name objects. */
function describe(object: KubeObject): string {
  const { namespace, name } = object.metadata ?? {};
  return `${textOf(namespace)}/${textOf(name)}; ${shownKind(object)}`;
}

/** "/v1, Kind=ConfigMap". A client's object may have values of any type in these fields. */
function shownKind({ apiVersion, kind }: KubeObject): string {
  const version = textOf(apiVersion);
  if (version === "") return `/, Kind=${textOf(kind)}`;
  const parsed = parseApiVersion(version);
  if (parsed === undefined) return "/, Kind=";
  return `${parsed.group}/${parsed.version}, Kind=${textOf(kind)}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toApiError(error: unknown): never {
  if (error instanceof ConflictsError) throw conflictError(error.conflicts);
  if (error instanceof TypedError) throw new ApiError(500, "", error.message);
  throw error;
}

/**
 * Bound of an object's entries of writes other than apply. Beyond it, the oldest are merged into
 * one per version (util/managedfields/internal/capmanagers.go).
 */
const MAX_UPDATE_MANAGERS = 10;

const BUCKET = "ancient-changes";

/** Merges the oldest entries of updates until there are at most MAX_UPDATE_MANAGERS. */
function capUpdateManagers(managed: Managed): Managed {
  const updaters = [...managed.managers].flatMap(([id, { applied }]) =>
    applied ? [] : [{ id, seconds: secondsOf(managed.times.get(id)) }],
  );
  if (updaters.length <= MAX_UPDATE_MANAGERS) return managed;
  const managers = new Map(managed.managers);
  const times = new Map(managed.times);
  updaters.sort((a, b) => a.seconds - b.seconds || compareUtf8(a.id, b.id));
  // What a bucket holds is collected in place: a union for each entry would copy it each time.
  const buckets = new Map<string, FieldSetBuilder>();
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const { id } of updaters) {
    if (count <= MAX_UPDATE_MANAGERS) break;
    const versioned = defined(managers.get(id), "the manager");
    const { apiVersion } = versioned;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, id);
      continue;
    }
    const bucket = managerId({ manager: BUCKET, operation: "Update", apiVersion });
    // Where the bucket is the later one of both, Kubernetes loses what it held.
    const other = id === bucket ? first : id;
    if (!managers.has(bucket)) renameManager(managers, first, bucket);
    let builder = buckets.get(bucket);
    if (builder === undefined) {
      builder = new FieldSetBuilder();
      builder.insertAll(defined(managers.get(bucket), "the manager").set);
      buckets.set(bucket, builder);
    }
    builder.insertAll(defined(managers.get(other), "the manager").set);
    managers.set(bucket, { ...versioned, set: EMPTY_SET });
    managers.delete(other);
    count--;
    const time = times.get(id);
    if (time === undefined) times.delete(bucket);
    else times.set(bucket, time);
  }
  for (const [id, builder] of buckets) {
    const bucket = defined(managers.get(id), "the bucket");
    managers.set(id, { ...bucket, set: builder.build() });
  }
  return { managers, times };
}

function renameManager(managers: Map<string, VersionedSet>, from: string, to: string): void {
  const versioned = defined(managers.get(from), "the manager");
  managers.delete(from);
  managers.set(to, versioned);
}

/** The field managers of served resources, made at their first write. */
export class FieldManagers {
  readonly #resources: ServedResources;
  readonly #clock: Pick<Clock, "turns">;
  readonly #made = new WeakMap<ServedResource, FieldManager>();

  /** @param clock for pauses in long writes */
  constructor(resources: ServedResources, clock: Pick<Clock, "turns">) {
    this.#resources = resources;
    this.#clock = clock;
  }

  of(resource: ServedResource): FieldManager {
    const known = this.#made.get(resource);
    if (known !== undefined) return known;
    const { kind, schema, resetFields } = resource;
    const manager = new FieldManager({
      kind,
      schema,
      resetFields,
      clock: this.#clock,
      empty: emptyObject(resource),
      setDefaults: (object) => resource.decode(object).object,
      versions: {
        schemaOf: (version) => this.#inVersion(resource, version)?.schema,
        convert: async (object: KubeObject, version: string) => {
          const other = this.#inVersion(resource, version);
          if (other === undefined) return object;
          return defined((await other.convert([object]))[0], "the converted object");
        },
      },
    });
    this.#made.set(resource, manager);
    return manager;
  }

  /** The same resource in another version, where that is served. */
  #inVersion(served: ServedResource, apiVersion: string) {
    if (served.inVersion !== undefined) return served.inVersion(apiVersion);
    const { resource, subresource } = served;
    const parsed = parseApiVersion(apiVersion);
    return parsed && this.#resources.find(parsed.group, parsed.version, resource, subresource);
  }
}

/**
 * The object that a create of a built-in kind is compared with; undefined for other kinds. Go's
 * structs have fields that are always there, such as "spec": {}, with defaults in the schema. Who
 * creates the object does not own them, only what is in them.
 */
function emptyObject(resource: ServedResource): KubeObject | undefined {
  const { kind, schema } = resource;
  if (!resource.strategicMerge || schema === undefined) return undefined;
  const head = { apiVersion: apiVersionOf(kind), kind: kind.kind };
  return { ...emptyFields(schema.schema, resource.decode(head).object), ...head } as KubeObject;
}

/** Keeps empty structs, zero values and null; drops what a default of the kind set. */
function emptyFields(schema: Schema, decoded: Fields): Fields {
  const empty: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(decoded)) {
    const field = schema.properties?.[name];
    if (field === undefined) continue;
    if (value === null) empty[name] = null;
    else if (isMap(field.default)) empty[name] = isMap(value) ? emptyFields(field, value) : {};
    else if (field.default !== undefined) empty[name] = field.default;
  }
  return empty;
}

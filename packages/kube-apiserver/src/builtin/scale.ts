/**
 * The subresource /scale: an autoscaling/v1 Scale made of three fields of the object
 * (apiextensions: registry/customresource/etcd.go ScaleREST).
 */

import {
  badRequest,
  type Getter,
  internalError,
  type KubeObject,
  type LabelSelectorObject,
  MadeObject,
  type RequestContext,
  type ResourceParts,
  type ResourceSpec,
  type RestGetOptions,
  type ScalePaths,
  SelectorSyntaxError,
  type StoredObject,
  selectorOfObject,
  subresourceStoreOf,
  type UpdatedObject,
  type Updater,
  type ValidateObject,
  type ValidateUpdate,
  type WriteOptions,
  withMetadata,
} from "@quorate/kube-storage";
import { defined, quoteText as goQuote } from "@quorate/proto";
import { FieldManager } from "../apply/field-manager.ts";

/** Stands for "was not set" in the Scale of an object without replicas: the smallest int32. */
const NO_REPLICAS = -(2 ** 31);

interface Scale extends KubeObject {
  readonly spec: { readonly replicas?: number };
}

function segments(path: string): string[] {
  return path.replace(/^\./, "").split(".");
}

function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const segment of segments(path)) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[segment];
  }
  return value;
}

/** A copy with the value at the path; objects on the way are copied or made. */
function withValueAt(object: object, path: readonly string[], value: unknown): object {
  const [first, ...rest] = path;
  if (first === undefined) return object;
  const fields = object as Record<string, unknown>;
  if (rest.length === 0) return { ...fields, [first]: value };
  const child = fields[first];
  const inner = typeof child === "object" && child !== null ? child : {};
  return { ...fields, [first]: withValueAt(inner, rest, value) };
}

/** A selector as text: it may be one already, a LabelSelector, or a map of labels. */
function selectorText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  const whole = "matchLabels" in value || "matchExpressions" in value;
  try {
    return String(
      selectorOfObject((whole ? value : { matchLabels: value }) as LabelSelectorObject),
    );
  } catch (error) {
    if (error instanceof SelectorSyntaxError) return "";
    throw error;
  }
}

/** The Scale of an object. @param missing what stands for replicas that are not set */
export function scaleOf(object: KubeObject, paths: ScalePaths, missing = 0): Scale {
  const number = (path: string): number | undefined => {
    const value = valueAt(object, path);
    return typeof value === "number" ? value : undefined;
  };
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector =
    paths.labelSelector === undefined ? "" : selectorText(valueAt(object, paths.labelSelector));
  const status = { replicas: number(paths.statusReplicas) ?? 0 };
  const named = selector !== "";
  return {
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(namespace === undefined ? {} : { namespace }),
    },
    spec: { replicas: number(paths.specReplicas) ?? missing },
    status: named ? { ...status, selector } : status,
  };
}

/** Reads and changes Scales. All methods reject with ApiError. */
export class ScaleStore implements Getter, Updater {
  readonly #store: Getter & Updater;
  readonly #paths: ScalePaths;
  readonly #spec: ResourceSpec;
  readonly #parts: ResourceParts;
  #fieldManager: FieldManager | undefined;

  constructor(spec: ResourceSpec, parts: ResourceParts, paths: ScalePaths) {
    this.#store = subresourceStoreOf(spec, parts, spec.strategy);
    this.#paths = paths;
    this.#spec = spec;
    this.#parts = parts;
  }

  async get(ctx: RequestContext, name: string, options: RestGetOptions): Promise<StoredObject> {
    const stored = await this.#store.get(ctx, name, options);
    const object = stored.object();
    if (typeof valueAt(object, this.#paths.specReplicas) !== "number") {
      const path = goQuote(this.#paths.specReplicas);
      throw internalError(`the spec replicas field ${path} does not exist`);
    }
    return new MadeObject(stored.key, stored.resourceVersion, scaleOf(object, this.#paths));
  }

  async update(
    ctx: RequestContext,
    name: string,
    updated: UpdatedObject,
    validateCreate: ValidateObject,
    validateUpdate: ValidateUpdate,
    _forceAllowCreate: boolean,
    options: WriteOptions,
  ): Promise<{ readonly object: KubeObject; readonly created: boolean }> {
    const paths = this.#paths;
    const { object } = await this.#store.update(
      ctx,
      name,
      {
        preconditions: updated.preconditions,
        make: async (request, old) => {
          const present = defined(old, "the object");
          const scale = await this.#made(updated, request, present);
          return await this.#managed(present, this.#withReplicas(present, scale), options);
        },
      },
      (created) => validateCreate(scaleOf(created, paths)),
      (changed, old) => validateUpdate(scaleOf(changed, paths), scaleOf(old, paths)),
      false,
      options,
    );
    return { object: scaleOf(object, paths), created: false };
  }

  async #made(updated: UpdatedObject, ctx: RequestContext, old: KubeObject): Promise<Scale> {
    return (await updated.make(ctx, scaleOf(old, this.#paths, NO_REPLICAS))) as Scale;
  }

  /** The replicas belong to the manager that scales, in the object itself. */
  async #managed(old: KubeObject, object: KubeObject, options: WriteOptions): Promise<KubeObject> {
    const { kind, schema } = this.#spec;
    this.#fieldManager ??= new FieldManager({
      kind,
      schema,
      // Versions of one kind have their replicas in the same place.
      versions: { schemaOf: () => schema, convert: async (other) => other },
    });
    const nowMs = this.#parts.clock.wallMs();
    return await this.#fieldManager.update(old, object, options.fieldManager, "scale", nowMs);
  }

  #withReplicas(object: KubeObject, scale: Scale): KubeObject {
    const { specReplicas } = this.#paths;
    const { replicas = 0 } = scale.spec ?? {};
    if (replicas === NO_REPLICAS) {
      throw badRequest(`the spec replicas field ${goQuote(specReplicas)} cannot be empty`);
    }
    const changed = withValueAt(object, segments(specReplicas), replicas) as KubeObject;
    const { resourceVersion = "" } = scale.metadata;
    return resourceVersion === "" ? changed : withMetadata(changed, { resourceVersion });
  }
}

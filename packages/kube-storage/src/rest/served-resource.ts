/**
 * What the server serves: resources by group, version and name. The set changes while the server
 * runs, as CustomResourceDefinitions come and go.
 */
import type { GroupVersion, GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { RestStorage, TableConvertor } from "./interfaces.ts";

/** The result of reading a client's object. */
export interface DecodedObject {
  /** Defaulted, and pruned of unknown fields where the kind's schema says so. */
  readonly object: KubeObject;
  /** Unknown and duplicate fields, such as 'unknown field "spec.foo"'. */
  readonly strictErrors: readonly string[];
}

/** One resource or subresource in one version. Its storage speaks that version. */
export interface ServedResource extends GroupVersion {
  /** The plural, such as "configmaps". */
  readonly resource: string;
  /** "" for the resource itself; "status", "scale", "token", "finalize". */
  readonly subresource: string;
  /** Of its objects; a subresource may have another kind, such as autoscaling/v1 Scale. */
  readonly kind: GroupVersionKind;
  /** The kind of its lists; absent: the kind with "List" behind it. */
  readonly listKind?: string | undefined;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly storage: RestStorage;
  readonly table: TableConvertor | undefined;
  /** For patches, apply and OpenAPI; undefined for kinds without one. */
  readonly schema: ObjectSchema | undefined;
  /** Fields that this endpoint resets, as fieldsV1 (Strategy.resetFields). */
  readonly resetFields?: Readonly<Record<string, unknown>> | undefined;
  /** Whether strategic merge patches are possible (built-in kinds only). */
  readonly strategicMerge: boolean;
  /** Hash of the storage's group, version and kind; "" where objects are not stored. */
  readonly storageVersionHash: string;
  /** Reads a client's JSON value: prunes, defaults, finds unknown fields. Throws ApiError. */
  decode(value: unknown): DecodedObject;
  /** Converts an object of any served version of this kind into this one. */
  convert(objects: readonly KubeObject[]): Promise<readonly KubeObject[]>;
  /**
   * A version of a custom kind, served or not, by its apiVersion. Throws ApiError for one that the
   * definition does not have. Absent: the served versions are all.
   */
  inVersion?(apiVersion: string): Pick<ServedResource, "schema" | "convert">;
  /** Protobuf, where the kind has it: messages without envelope. */
  readonly protobuf:
    | { encode(object: KubeObject): Uint8Array; decode(bytes: Uint8Array): KubeObject }
    | undefined;
  /** Text for a Warning header of every request, where the version is deprecated. */
  readonly deprecationWarning: string | undefined;
}

/** The served resources. */
export interface ServedResources {
  find(
    group: string,
    version: string,
    resource: string,
    subresource: string,
  ): ServedResource | undefined;
  /** All, in the order of discovery: groups by their priority, versions from new to old. */
  all(): readonly ServedResource[];
  /** Whether built-in kinds are in the group: all of its paths are theirs. */
  hasBuiltIns(group: string): boolean;
  /** Calls `listener` after each change; returns a function that stops that. */
  onChange(listener: () => void): () => void;
}

/** Whether a resource is a built-in kind's: those have protobuf. */
export function isBuiltIn({ subresource, protobuf }: ServedResource): boolean {
  return subresource === "" && protobuf !== undefined;
}

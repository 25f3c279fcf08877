/**
 * What one definition serves: for each served version the resource, /status and /scale, over one
 * storage that all versions share.
 */

import {
  ApiError,
  apiVersionOf,
  compareVersions,
  forbidden,
  type GroupVersionKind,
  jsonCodec,
  jsonOf,
  type KindSource,
  type KubeObject,
  newUid,
  type ObjectCodec,
  parseApiVersion,
  type RegistryDeps,
  type ResourceSpec,
  type ResourceStore,
  type Schema,
  type ServedResource,
  type StorageFactory,
  type StorageInterface,
  storeOf,
  withMetadata,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type { WebhookCaller } from "../../admission/webhook-caller.ts";
import { servedResourcesOf } from "../../builtin/served-resources.ts";
import { type Converter, noConversion } from "../conversion/converter.ts";
import { ConvertingStorage } from "../conversion/converting-storage.ts";
import { WebhookConverter } from "../conversion/webhook-converter.ts";
import {
  type Crd,
  type CrdVersion,
  isConditionTrue,
  storageVersionOf,
} from "../definition/types.ts";
import { columnsTable, textOf } from "./columns.ts";
import {
  type CustomRules,
  customStatusStrategy,
  customStrategy,
  type RuleEvaluation,
} from "./custom-strategy.ts";
import { JsonPath } from "./json-path.ts";
import { loadSchemaPatterns } from "./schema-patterns.ts";
import { VersionSchema } from "./version-schema.ts";
import { versionSource } from "./version-source.ts";

export interface CustomResourceDeps extends RegistryDeps {
  readonly storages: StorageFactory & { release(storage: StorageInterface): Promise<void> };
  /** The schema of metadata, for apply and OpenAPI. */
  readonly metadataSchema: Schema;
  /** autoscaling/v1 Scale. */
  readonly scaleSource: KindSource;
  readonly webhooks: WebhookCaller;
  /** Compiles the rules of a schema; undefined where it has none. */
  readonly rulesFor: (schema: Schema) => Promise<RuleEvaluation | undefined>;
}

/** A definition in service. */
export class CustomResource {
  readonly served: readonly ServedResource[];
  /** The objects of all versions, as they are stored. */
  readonly instances: ResourceStore;
  readonly #storage: StorageInterface;
  readonly #deps: CustomResourceDeps;

  private constructor(
    served: readonly ServedResource[],
    instances: ResourceStore,
    storage: StorageInterface,
    deps: CustomResourceDeps,
  ) {
    this.served = served;
    this.instances = instances;
    this.#storage = storage;
    this.#deps = deps;
  }

  /**
   * @param present the definition as it is now: it may be about to be deleted
   */
  static async open(
    crd: Crd,
    present: () => Crd | undefined,
    deps: CustomResourceDeps,
  ): Promise<CustomResource> {
    const parts = new CustomParts(crd, present, deps);
    const storageSpec = parts.storageSpec();
    const storage = deps.storages.storageFor(storageSpec);
    const instances = storeOf(storageSpec, { ...deps, storage });
    const served: ServedResource[] = [];
    for (const version of crd.spec.versions ?? []) {
      if (version.served === true) served.push(...(await parts.serve(version, storage)));
    }
    return new CustomResource(served, instances, storage, deps);
  }

  /** Ends the watches of its objects. */
  async close(): Promise<void> {
    await this.#deps.storages.release(this.#storage);
  }
}

class CustomParts {
  readonly #crd: Crd;
  readonly #present: () => Crd | undefined;
  readonly #deps: CustomResourceDeps;
  readonly #versions = new Map<string, VersionSchema>();
  readonly #converter: Converter;
  readonly #storedKind: GroupVersionKind;

  constructor(crd: Crd, present: () => Crd | undefined, deps: CustomResourceDeps) {
    this.#crd = crd;
    this.#present = present;
    this.#deps = deps;
    const preserves = crd.spec.preserveUnknownFields === true;
    for (const version of crd.spec.versions ?? []) {
      const schema = new VersionSchema(
        this.#kindOf(version.name),
        version,
        deps.metadataSchema,
        preserves,
      );
      this.#versions.set(version.name, schema);
    }
    this.#storedKind = this.#kindOf(storageVersionOf(crd) ?? "");
    this.#converter = converterOf(crd, deps);
  }

  #kindOf(version: string): GroupVersionKind {
    const { group = "" } = this.#crd.spec;
    return { group, version, kind: this.#crd.status?.acceptedNames?.kind ?? "" };
  }

  #versionNamed(name: string): VersionSchema {
    return defined(this.#versions.get(name), "the version");
  }

  get #namespaced(): boolean {
    return this.#crd.spec.scope === "Namespaced";
  }

  /** What all versions have in common. */
  #commonSpec() {
    const { group = "" } = this.#crd.spec;
    const names = this.#crd.status?.acceptedNames ?? {};
    return {
      resource: names.plural ?? "",
      singular: names.singular ?? "",
      shortNames: names.shortNames ?? [],
      categories: names.categories ?? [],
      namespaced: this.#namespaced,
      storagePrefix: `${group}/${names.plural ?? ""}`,
      codec: storedCodec(this.#versions),
      ownStorage: true,
    };
  }

  /** The declaration of the shared storage, in the storage version. */
  storageSpec(): ResourceSpec {
    const stored = this.#versionNamed(this.#storedKind.version);
    const all = (this.#crd.spec.versions ?? []).flatMap((one) => one.selectableFields ?? []);
    const paths = new Set(all.map(({ jsonPath = "" }) => jsonPath));
    return {
      ...this.#commonSpec(),
      kind: this.#storedKind,
      schema: { kind: this.#storedKind, schema: stored.complete },
      strategy: customStrategy({
        version: stored,
        namespaced: this.#namespaced,
        subresources: undefined,
        patterns: undefined,
        rules: undefined,
      }),
      table: columnsTable(undefined),
      ...selectable([...paths]),
    };
  }

  async serve(version: CrdVersion, storage: StorageInterface): Promise<ServedResource[]> {
    const schema = this.#versionNamed(version.name);
    const spec = this.#versionSpec(version, await this.#rulesOf(version, schema));
    const source = versionSource(schema, spec.codec);
    const converting = this.#storageOf(schema, storage);
    const { scaleSource } = this.#deps;
    const all = servedResourcesOf(
      spec,
      {
        source,
        subresourceSource: (kind) => (kind.kind === "Scale" ? scaleSource : undefined),
        storedKind: this.#storedKind,
        strategicMerge: false,
      },
      { ...this.#deps, storage: converting },
    );
    const warning = deprecationWarning(version, this.#crd);
    const listKind = this.#crd.status?.acceptedNames?.listKind;
    return all.map((one) => ({
      ...one,
      listKind,
      deprecationWarning: warning,
      ...(one.subresource === "scale"
        ? {}
        : {
            convert: this.#convertTo(schema),
            inVersion: (apiVersion: string) => this.#inVersion(apiVersion),
          }),
    }));
  }

  async #rulesOf(version: CrdVersion, schema: VersionSchema): Promise<CustomRules> {
    return {
      version: schema,
      namespaced: this.#namespaced,
      subresources: version.subresources,
      patterns: await loadSchemaPatterns(schema.schema),
      rules: schema.schema === undefined ? undefined : await this.#deps.rulesFor(schema.schema),
    };
  }

  #versionSpec(version: CrdVersion, rules: CustomRules): ResourceSpec {
    const { status, scale } = version.subresources ?? {};
    const hasStatus = (status ?? undefined) !== undefined;
    return {
      ...this.#commonSpec(),
      kind: rules.version.kind,
      schema: { kind: rules.version.kind, schema: rules.version.complete },
      strategy: customStrategy(rules),
      statusStrategy: hasStatus ? customStatusStrategy(rules) : undefined,
      scale: (scale ?? undefined) && {
        specReplicas: scale?.specReplicasPath ?? "",
        statusReplicas: scale?.statusReplicasPath ?? "",
        labelSelector: scale?.labelSelectorPath,
      },
      table: columnsTable(version.additionalPrinterColumns),
      ...selectable((version.selectableFields ?? []).map(({ jsonPath = "" }) => jsonPath)),
      hooks: {
        beginCreate: async (_ctx, object) => {
          this.#refuseWhileTerminating(object);
          return { object };
        },
      },
    };
  }

  #refuseWhileTerminating(object: KubeObject): void {
    const crd = this.#present();
    if (crd !== undefined && isConditionTrue(crd, "Terminating")) {
      const { group = "" } = this.#crd.spec;
      const resource = { group, resource: crd.status?.acceptedNames?.plural ?? "" };
      const why = "create not allowed while custom resource definition is terminating";
      throw forbidden(resource, object.metadata.name ?? "", why);
    }
  }

  #storageOf(schema: VersionSchema, storage: StorageInterface): StorageInterface {
    const stored = this.#versionNamed(this.#storedKind.version);
    const options = { dropMalformed: false };
    return new ConvertingStorage(
      {
        apiVersion: apiVersionOf(schema.kind),
        storedApiVersion: apiVersionOf(this.#storedKind),
        read: (object) => schema.read(object, options, false),
        readStored: (object) => stored.read(object, options, false),
      },
      { storage, converter: this.#converter },
    );
  }

  #inVersion(apiVersion: string): Pick<ServedResource, "schema" | "convert"> {
    const { group = "", version = "" } = parseApiVersion(apiVersion) ?? {};
    const schema = this.#versions.get(version);
    if (schema === undefined || group !== this.#storedKind.group)
      throw new ApiError(
        500,
        "",
        `request to convert CR to an invalid group/version: ${apiVersion}`,
      );
    return {
      schema: { kind: schema.kind, schema: schema.complete },
      convert: async (objects) => [...(await this.#converter.convert(objects, apiVersion))],
    };
  }

  #convertTo(schema: VersionSchema) {
    const apiVersion = apiVersionOf(schema.kind);
    return async (objects: readonly KubeObject[]) => {
      const converted = await this.#converter.convert(objects, apiVersion);
      return converted.map((object, i) =>
        object === objects[i] ? object : schema.read(object, { dropMalformed: false }, false),
      );
    };
  }
}

function converterOf(crd: Crd, deps: CustomResourceDeps): Converter {
  const { strategy, webhook } = crd.spec.conversion ?? {};
  if (strategy !== "Webhook") return noConversion;
  return new WebhookConverter(
    {
      config: webhook?.clientConfig ?? {},
      reviewVersions: webhook?.conversionReviewVersions ?? [],
    },
    { caller: deps.webhooks, clock: deps.clock, newUid: () => newUid(deps.random) },
  );
}

/** Selectable fields by their paths, such as ".spec.color". */
function selectable(paths: readonly string[]) {
  const parsed = paths.map((path) => [path.replace(/^\./, ""), new JsonPath(path)] as const);
  return {
    selectableFieldNames: parsed.map(([name]) => name),
    selectableFields: (object: KubeObject) => {
      const fields: Record<string, string> = {};
      for (const [name, path] of parsed) {
        const [value] = path.find(jsonOf(object));
        fields[name] = value === undefined || value === null ? "" : textOf(value);
      }
      return fields;
    },
  };
}

/**
 * How custom resources are stored: JSON in the storage version. Objects that an earlier storage
 * version left are read as they are and converted later, because a webhook may be needed.
 *
 * @param versions all versions of the definition, by name
 */
function storedCodec(versions: ReadonlyMap<string, VersionSchema>): ObjectCodec {
  return {
    encode: jsonCodec.encode,
    decode(bytes) {
      const object = jsonCodec.decode(bytes);
      const { version = "" } = parseApiVersion(object.apiVersion) ?? {};
      const known = versions.get(version);
      if (known === undefined) {
        const why = "request to convert CR from an invalid group/version";
        throw new TypeError(`${why}: ${object.apiVersion}`);
      }
      const read = known.read(object, { dropMalformed: true });
      // Very old objects have no generation.
      return (read.metadata.generation ?? 0) === 0 ? withMetadata(read, { generation: 1 }) : read;
    },
  };
}

/** Undefined for a version that is not deprecated. */
function deprecationWarning(version: CrdVersion, crd: Crd): string | undefined {
  if (version.deprecated !== true) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const { group = "", names, versions = [] } = crd.spec;
  const kind = names?.kind ?? "";
  const text = `${group}/${version.name} ${kind} is deprecated`;
  const newer = versions
    .filter(
      ({ name, served, deprecated }) =>
        served === true && deprecated !== true && compareVersions(name, version.name) < 0,
    )
    .map(({ name }) => name)
    .sort(compareVersions);
  return newer.length === 0 ? text : `${text}; use ${group}/${newer[0]} ${kind}`;
}

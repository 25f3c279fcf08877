/** The strategies of definitions (apiextensions-apiserver: registry/customresourcedefinition). */
import {
  type FieldError,
  type Json,
  type KubeObject,
  type Schema,
  type Strategy,
  sameJson,
  withMetadata,
} from "@quorate/kube-storage";
import { effectiveFormat } from "../validation/formats.ts";
import { loadPatterns } from "../validation/patterns.ts";
import { withStatus } from "./conditions.ts";
import { type RawSchema, someSchema } from "./raw-schema.ts";
import type { RuleChecker } from "./schema-rules.ts";
import {
  CRD_KIND,
  type Crd,
  type CrdConversion,
  type CrdNames,
  type CrdSpec,
  type CrdStatus,
  storageVersionOf,
} from "./types.ts";
import { type CrdRules, crdErrors, crdUpdateErrors, statusErrors } from "./validate.ts";

/** What compiles the rules of definitions (x-kubernetes-validations), and evaluates them. */
export interface DefinitionRules {
  checker(old: Crd | undefined): RuleChecker;
  evaluate(schema: Schema, value: Json, path: string): Promise<readonly FieldError[]>;
}

/** Loads it with the first definition that has rules. */
export type LoadRules = () => Promise<DefinitionRules>;

const BASE = {
  kind: CRD_KIND,
  namespaced: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: false,
} as const;

/** @param pause lets other work run between the passes over a large schema */
export function crdStrategy(loadRules: LoadRules, pause: () => Promise<void>): Strategy {
  const judge = async (crd: Crd, errorsOf: (rules: CrdRules) => Promise<FieldError[]>) => {
    const patterns = await loadPatterns();
    const rules = hasRules(crd) ? await loadRules() : undefined;
    const defaults: Parameters<DefinitionRules["evaluate"]>[] = [];
    const errors = await errorsOf({
      patterns,
      ruleChecker: rules && ((old) => rules.checker(old)),
      defaultRules: (...one) => void defaults.push(one),
      pause,
    });
    if (rules === undefined || errors.length > 0) return errors;
    for (const one of defaults) errors.push(...(await rules.evaluate(...one)));
    return errors;
  };
  return {
    ...BASE,
    prepareForCreate(_ctx, object) {
      const { status: _, ...rest } = object as Crd;
      const crd = withDefaults(rest as Crd);
      return withMetadata(withStorageVersion({ ...crd, status: EMPTY_STATUS }), { generation: 1 });
    },
    prepareForUpdate(_ctx, object, old) {
      const before = old as Crd;
      const crd = withDefaults(object as Crd);
      const kept = withStorageVersion({ ...crd, status: before.status });
      if (sameJson(kept.spec, before.spec)) return kept;
      return withMetadata(kept, { generation: (before.metadata.generation ?? 0) + 1 });
    },
    validate: (_ctx, object) => judge(object as Crd, (rules) => crdErrors(object as Crd, rules)),
    validateUpdate: (_ctx, object, old) =>
      judge(object as Crd, (rules) => crdUpdateErrors(object as Crd, old as Crd, rules)),
    warningsOnCreate: (_ctx, object) => formatWarnings(object as Crd, new Set()),
    warningsOnUpdate: (_ctx, object, old) =>
      formatWarnings(object as Crd, new Set(unknownFormats(old as Crd))),
    resetFields: { "f:status": {} },
  };
}

/** As Go writes a status in which nothing is set. */
const EMPTY_STATUS: CrdStatus = { conditions: null, acceptedNames: { plural: "", kind: "" } };

export function crdStatusStrategy(): Strategy {
  return {
    ...BASE,
    prepareForCreate: (_ctx, object) => object,
    validate: () => [],
    prepareForUpdate: (_ctx, object, old): KubeObject => ({ ...object, spec: old["spec"] }),
    validateUpdate: (_ctx, object): readonly FieldError[] => statusErrors(object as Crd),
    resetFields: { "f:spec": {} },
  };
}

/** The storage version is one in which objects are stored. */
function withStorageVersion(crd: Crd): Crd {
  const version = storageVersionOf(crd);
  const stored = crd.status?.storedVersions ?? [];
  if (version === undefined || stored.includes(version)) return crd;
  return withStatus(crd, { storedVersions: [...stored, version] });
}

function schemasOf(crd: Crd): RawSchema[] {
  const schemas = (crd.spec.versions ?? []).map((version) => version.schema?.openAPIV3Schema);
  return schemas.filter((schema) => schema !== undefined) as RawSchema[];
}

function hasRules(crd: Crd): boolean {
  const isSet = (schema: RawSchema) => (schema["x-kubernetes-validations"]?.length ?? 0) > 0;
  return schemasOf(crd).some((schema) => someSchema(schema, isSet));
}

function formatWarnings(crd: Crd, known: ReadonlySet<string>): string[] {
  const formats = unknownFormats(crd).filter((format) => !known.has(format));
  return formats.map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

/** The formats in the schemas that are not checked; those of equal schemas once. */
function unknownFormats(crd: Crd): string[] {
  const formats: string[] = [];
  const seen: RawSchema[] = [];
  for (const schema of schemasOf(crd)) {
    if (seen.some((other) => sameJson(other, schema))) continue;
    seen.push(schema);
    someSchema(schema, (one) => {
      const { format = "" } = one;
      if (format !== "" && effectiveFormat(one as never) === "") formats.push(format);
      return false;
    });
  }
  return formats;
}

const DEFAULT_PORT = 443;

/** The definition with its defaults; the same object where it has them. */
export function withDefaults(crd: Crd): Crd {
  const spec = specWithDefaults(crd.spec ?? {});
  let result: Crd = spec === crd.spec ? crd : { ...crd, spec };
  if ((crd.status?.storedVersions?.length ?? 0) === 0) {
    const storage = spec.versions?.find((version) => version.storage === true)?.name;
    if (storage !== undefined) {
      result = { ...result, status: { ...crd.status, storedVersions: [storage] } };
    }
  }
  return result;
}

function specWithDefaults(spec: CrdSpec): CrdSpec {
  const names = namesWithDefaults(spec.names ?? {});
  const conversion = conversionWithDefaults(spec.conversion);
  if (names === spec.names && conversion === spec.conversion) return spec;
  return { ...spec, names, conversion };
}

function namesWithDefaults(names: CrdNames): CrdNames {
  const { kind = "", singular = "", listKind = "" } = names;
  if (kind === "" || (singular !== "" && listKind !== "")) return names;
  return {
    ...names,
    singular: singular === "" ? kind.toLowerCase() : singular,
    listKind: listKind === "" ? `${kind}List` : listKind,
  };
}

function conversionWithDefaults(conversion: CrdConversion | undefined): CrdConversion {
  if (conversion === undefined || conversion === null) return { strategy: "None" };
  const config = conversion.webhook?.clientConfig;
  if (config?.service === undefined || config.service.port !== undefined) return conversion;
  const service = { ...config.service, port: DEFAULT_PORT };
  return {
    ...conversion,
    webhook: { ...conversion.webhook, clientConfig: { ...config, service } },
  };
}

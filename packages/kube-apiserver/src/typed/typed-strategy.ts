/** The rules of a resource defined in TypeScript: those of its schema, then the program's own. */

import type { FieldError, KubeObject, RequestContext, Strategy } from "@quorate/kube-storage";
import { customStatusStrategy, customStrategy } from "../crd/serving/custom-strategy.ts";
import { loadSchemaPatterns } from "../crd/serving/schema-patterns.ts";
import type { VersionSchema } from "../crd/serving/version-schema.ts";

type Errors = readonly FieldError[] | Promise<readonly FieldError[]>;

/** What a program adds to the rules of its schema. Objects are as stored: they must not change. */
export interface TypedStrategy<T extends KubeObject> {
  /** PUT creates an object that is not there. Default: false. */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without resourceVersion overwrites. Default: false. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Runs after the status was removed; returns a copy if it changes something. */
  prepareForCreate?(ctx: RequestContext, object: T): T;
  /** Called for objects that keep the rules of the schema. */
  validate?(ctx: RequestContext, object: T): Errors;
  warningsOnCreate?(ctx: RequestContext, object: T): readonly string[];
  prepareForUpdate?(ctx: RequestContext, object: T, old: T): T;
  /** Called besides `validate` for changes. */
  validateUpdate?(ctx: RequestContext, object: T, old: T): Errors;
  warningsOnUpdate?(ctx: RequestContext, object: T, old: T): readonly string[];
  canonicalize?(object: T): T;
  gracePeriodSeconds?(object: T, requested: number | undefined): number;
}

export interface TypedRules<T extends KubeObject> {
  readonly version: VersionSchema;
  readonly namespaced: boolean;
  readonly hasStatus: boolean;
  readonly own: TypedStrategy<T>;
}

/** The strategy of the schema, with the engine of regular expressions once a check needs it. */
function schemaStrategies<T extends KubeObject>({ version, namespaced, hasStatus }: TypedRules<T>) {
  const subresources = hasStatus ? { status: {} } : undefined;
  const custom = { version, namespaced, subresources, rules: undefined };
  let patterns: ReturnType<typeof loadSchemaPatterns> | undefined;
  const load = async () => {
    patterns ??= loadSchemaPatterns(version.schema);
    return { ...custom, patterns: await patterns };
  };
  return {
    plain: customStrategy({ ...custom, patterns: undefined }),
    plainStatus: customStatusStrategy({ ...custom, patterns: undefined }),
    main: async () => customStrategy(await load()),
    status: async () => customStatusStrategy(await load()),
  };
}

/** The strategies of the resource and of its /status. */
export function typedStrategies<T extends KubeObject>(
  rules: TypedRules<T>,
): { readonly main: Strategy; readonly status: Strategy } {
  const { own } = rules;
  const schema = schemaStrategies(rules);
  const typed = (object: KubeObject): T => object as T;
  const main: Strategy = {
    ...schema.plain,
    allowCreateOnUpdate: own.allowCreateOnUpdate ?? false,
    allowUnconditionalUpdate: own.allowUnconditionalUpdate ?? false,
    prepareForCreate(ctx, object) {
      const prepared = schema.plain.prepareForCreate(ctx, object);
      return own.prepareForCreate?.(ctx, typed(prepared)) ?? prepared;
    },
    async validate(ctx, object) {
      const errors = await (await schema.main()).validate(ctx, object);
      return errors.length > 0 ? errors : ((await own.validate?.(ctx, typed(object))) ?? []);
    },
    warningsOnCreate: (ctx, object) => [
      ...(schema.plain.warningsOnCreate?.(ctx, object) ?? []),
      ...(own.warningsOnCreate?.(ctx, typed(object)) ?? []),
    ],
    prepareForUpdate(ctx, object, old) {
      const prepared = own.prepareForUpdate?.(ctx, typed(object), typed(old)) ?? object;
      return schema.plain.prepareForUpdate(ctx, prepared, old);
    },
    async validateUpdate(ctx, object, old) {
      const errors = await (await schema.main()).validateUpdate(ctx, object, old);
      if (errors.length > 0) return errors;
      return [
        ...((await own.validate?.(ctx, typed(object))) ?? []),
        ...((await own.validateUpdate?.(ctx, typed(object), typed(old))) ?? []),
      ];
    },
    warningsOnUpdate: (ctx, object, old) => [
      ...(schema.plain.warningsOnUpdate?.(ctx, object, old) ?? []),
      ...(own.warningsOnUpdate?.(ctx, typed(object), typed(old)) ?? []),
    ],
    canonicalize: (object) => own.canonicalize?.(typed(object)) ?? object,
    ...(own.gracePeriodSeconds === undefined
      ? {}
      : {
          gracePeriodSeconds: (object, requested) =>
            own.gracePeriodSeconds!(typed(object), requested),
        }),
  };
  const status: Strategy = {
    ...schema.plainStatus,
    allowUnconditionalUpdate: main.allowUnconditionalUpdate,
    validateUpdate: async (ctx, object, old) =>
      (await schema.status()).validateUpdate(ctx, object, old),
  };
  return { main, status };
}

/**
 * CustomResourceDefinitions as one part of an API server: the kind itself, and the resources that
 * the definitions in the store declare.
 */
import { type Clock, type Logger, type Random, sleep } from "@quorate/host";
import {
  DEFAULT_TABLE,
  type Json,
  jsonCodec,
  type KindSource,
  type KubeObject,
  kindSource,
  type Lister,
  metaTime,
  type ObjectCodec,
  type ResourceSpec,
  type Schema,
  type ServedResource,
  type StorageInterface,
  type Updater,
  type Watcher,
  withMetadata,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type { WebhookCaller } from "../admission/webhook-caller.ts";
import { servedResourcesOf } from "../builtin/served-resources.ts";
import { twoStepStoreOf } from "../builtin/two-step-deletion.ts";
import { loadCel } from "./cel/engine.ts";
import type { RuleEvaluator } from "./cel/evaluation.ts";
import { withCondition } from "./definition/conditions.ts";
import { fromStored, toStored } from "./definition/stored-form.ts";
import { crdStatusStrategy, crdStrategy, type LoadRules } from "./definition/strategy.ts";
import {
  CLEANUP_FINALIZER,
  CRD_GROUP,
  CRD_KIND,
  CRD_RESOURCE,
  type Crd,
} from "./definition/types.ts";
import { traitsOf } from "./schema/traits.ts";
import { DefinitionController, type DefinitionOptions } from "./serving/controller.ts";
import type { RuleEvaluation } from "./serving/custom-strategy.ts";

export interface CustomResourcesDeps {
  /** Opens storages, and closes those of resources that go. */
  readonly storages: {
    storageFor(spec: ResourceSpec): StorageInterface;
    release(storage: StorageInterface): Promise<void>;
  };
  readonly table: { set(owner: string, resources: readonly ServedResource[]): void };
  readonly webhooks: WebhookCaller;
  /** Whether a built-in resource has this name. */
  isBuiltIn(group: string, resource: string): boolean;
  readonly collectsGarbage: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class CustomResources {
  /** The endpoints of the kind CustomResourceDefinition. */
  readonly served: readonly ServedResource[];
  readonly #controller: DefinitionController;

  constructor(options: DefinitionOptions, deps: CustomResourcesDeps) {
    const { clock, random, logger, collectsGarbage, storages } = deps;
    const source = kindSource(CRD_GROUP, CRD_KIND.version, CRD_KIND.kind);
    const spec = customResourceDefinitions(source, () => loadRules(clock), pauseOf(clock));
    const registry = { clock, random, collectsGarbage };
    this.served = servedResourcesOf(
      spec,
      {
        source,
        subresourceSource: () => undefined,
        strategicMerge: true,
      },
      { ...registry, storage: storages.storageFor(spec) },
    );
    const storageOf = (name: string) =>
      defined(
        this.served.find(({ subresource }) => subresource === name),
        "the served resource",
      ).storage;
    this.#controller = new DefinitionController(options, {
      definitions: storageOf("") as Lister & Watcher,
      status: storageOf("status") as Updater,
      custom: {
        ...registry,
        storages,
        metadataSchema: defined(source.schema.schema.properties?.["metadata"], "the metadata"),
        scaleSource: kindSource("autoscaling", "v1", "Scale"),
        webhooks: deps.webhooks,
        rulesFor: (schema) => rulesFor(schema, clock),
      },
      table: deps.table,
      isBuiltIn: deps.isBuiltIn,
      clock,
      random,
      logger,
    });
  }

  /** Begins to follow the definitions in the store. */
  start(): void {
    this.#controller.start();
  }

  /** Resolves when what was in the store at the start is served. */
  ready(): Promise<void> {
    return this.#controller.ready();
  }

  async stop(): Promise<void> {
    await this.#controller.stop();
  }
}

/** Compiles the rules of new definitions. */
async function loadRules(clock: Clock) {
  const [engine, { ruleChecker }, { RuleEvaluator }] = await Promise.all([
    loadCel(),
    import("./cel/checker.ts"),
    import("./cel/evaluation.ts"),
  ]);
  return {
    checker: (old: Crd | undefined) => ruleChecker(engine, old),
    evaluate: (schema: Schema, value: Json, path: string) =>
      new RuleEvaluator(schema, engine, pauseOf(clock)).evaluate(value, undefined, path, false),
  };
}

function pauseOf(clock: Clock): () => Promise<void> {
  return () => sleep(clock, 0);
}

async function evaluatorOf(schema: Schema, clock: Clock): Promise<RuleEvaluator> {
  const [engine, module] = await Promise.all([loadCel(), import("./cel/evaluation.ts")]);
  return new module.RuleEvaluator(schema, engine, pauseOf(clock));
}

/** The rules of a served version; the library loads with the first object that they judge. */
async function rulesFor(schema: Schema, clock: Clock): Promise<RuleEvaluation | undefined> {
  if (!traitsOf(schema).rules) return undefined;
  let made: Promise<RuleEvaluator> | undefined;
  return async (object, old) => {
    made ??= evaluatorOf(schema, clock);
    return await (await made).evaluate(object, old);
  };
}

/** As kube-apiserver stores definitions: JSON in the form of v1beta1. */
export const crdCodec: ObjectCodec = {
  encode: (object) => jsonCodec.encode(toStored(object as Crd)),
  decode: (bytes) => fromStored(jsonCodec.decode(bytes)),
};

/**
 * @param source of the kind, for its OpenAPI schema
 * @param pause lets other work run
 */
function customResourceDefinitions(
  source: Pick<KindSource, "schema">,
  loadRules: LoadRules,
  pause: () => Promise<void>,
): ResourceSpec {
  const spec: ResourceSpec = {
    kind: CRD_KIND,
    resource: CRD_RESOURCE.resource,
    singular: "customresourcedefinition",
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    namespaced: false,
    storagePrefix: `${CRD_GROUP}/${CRD_RESOURCE.resource}`,
    codec: crdCodec,
    get schema() {
      return source.schema;
    },
    strategy: crdStrategy(loadRules, pause),
    statusStrategy: crdStatusStrategy(),
    table: DEFAULT_TABLE,
    selectableFieldNames: [],
    returnsDeletedObject: false,
    customize: (storages, parts) => ({
      ...storages,
      main: twoStepStoreOf(spec, parts, { marked: terminating, isKept: () => false }),
    }),
  };
  return spec;
}

/**
 * The first deletion of a definition sets its finalizer and the condition Terminating; the
 * definition goes when its instances are deleted.
 */
function terminating(object: KubeObject, _options: unknown, nowMs: number): Crd {
  const now = metaTime(nowMs);
  const crd = object as Crd;
  const { deletionTimestamp = now, finalizers = [] } = crd.metadata;
  const kept = finalizers.includes(CLEANUP_FINALIZER)
    ? finalizers
    : [...finalizers, CLEANUP_FINALIZER];
  const marked = withMetadata(crd, { deletionTimestamp, finalizers: kept }) as Crd;
  return withCondition(
    marked,
    {
      type: "Terminating",
      status: "True",
      reason: "InstanceDeletionPending",
      message:
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    },
    now,
  );
}

/** PUT: replaces an object (apiserver: handlers/update.go). */

import {
  inNamespace,
  type KubeObject,
  type RequestContext,
  storageWith,
  type UpdatedObject,
  type ValidateObject,
  type ValidateUpdate,
  type WriteOptions,
} from "@quorate/kube-storage";
import { forbiddenError } from "../authn/forbidden.ts";
import { readObject } from "./read-body.ts";
import {
  admissionAttributes,
  checkName,
  dedupedOwners,
  type HandlerDeps,
  namespaceFor,
  type ResourceCall,
  reportStrictErrors,
} from "./resource-call.ts";
import { sendObject } from "./send-object.ts";
import { attributesOf } from "./target.ts";
import { optionsObject, type ParsedWriteOptions, writeOptionsOf } from "./write-options.ts";

export async function update(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx } = given;
  const options = writeOptionsOf(call.query, "UpdateOptions", call.userAgent);
  const read = await readObject(call, resource, deps.clock);
  reportStrictErrors(ctx, resource, read.strictErrors, options.fieldValidation);
  call.audit?.request(read.object, read.sizeBytes);
  const sent = dedupedOwners(inNamespace(read.object, namespaceFor(resource, ctx)), ctx, false);
  checkName(sent, target.name);
  await given.chaos?.beforeUpdate(sent);
  const manager = deps.fieldManagers.of(resource);
  const updated: UpdatedObject = {
    preconditions: sent.metadata.uid ? { uid: sent.metadata.uid } : undefined,
    make: async (_ctx, old) => {
      const { fieldManager } = options;
      const nowMs = deps.clock.wallMs();
      const object = await manager.update(old, sent, fieldManager, resource.subresource, nowMs);
      return mutatedUpdate(given, deps, options, object, old);
    },
  };
  await sendUpdated(given, deps, updated, false, options);
}

/** Updates in the storage, and sends the result. The storage has updates. */
export async function sendUpdated(
  given: ResourceCall,
  deps: HandlerDeps,
  updated: UpdatedObject,
  forceAllowCreate: boolean,
  options: ParsedWriteOptions,
): Promise<void> {
  const { call, target, resource, ctx, form } = given;
  const { object, created } = await storageWith(resource.storage, "update").update(
    ctx,
    target.name,
    updated,
    validateCreate(given, deps, options),
    validateUpdate(given, deps, options),
    forceAllowCreate,
    options,
  );
  await sendObject(call, deps, resource, form, created ? 201 : 200, { object: () => object });
}

/** Admission of what an update makes: a new object where there was none. */
export async function mutatedUpdate(
  given: ResourceCall,
  { admission }: HandlerDeps,
  { dryRun }: WriteOptions,
  object: KubeObject,
  old: KubeObject | undefined,
): Promise<KubeObject> {
  const kind = old === undefined ? "CreateOptions" : "UpdateOptions";
  const options = { object: optionsObject(kind, given.call.query), dryRun };
  const operation = old === undefined ? "CREATE" : "UPDATE";
  const attributes = admissionAttributes(given, operation, object, old, options);
  const mutated = (await admission.mutate(attributes)) ?? object;
  return dedupedOwners(mutated, given.ctx as RequestContext, true);
}

/** Creation by an update needs permission to create, asked for once. */
function validateCreate(
  given: ResourceCall,
  { admission, authorizer }: HandlerDeps,
  { dryRun }: WriteOptions,
): ValidateObject {
  const { call, target } = given;
  const attributes = { ...attributesOf(target, call.user), verb: "create" };
  let decision: Promise<void> | undefined;
  const decide = async (): Promise<void> => {
    const { decision: it, reason } = await authorizer.authorize(attributes);
    if (it !== "allow") throw forbiddenError(attributes, reason);
  };
  return async (object) => {
    decision ??= decide();
    await decision;
    const options = { object: optionsObject("CreateOptions", call.query), dryRun };
    await admission.validate(admissionAttributes(given, "CREATE", object, undefined, options));
  };
}

function validateUpdate(
  given: ResourceCall,
  { admission }: HandlerDeps,
  { dryRun }: WriteOptions,
): ValidateUpdate {
  const options = { object: optionsObject("UpdateOptions", given.call.query), dryRun };
  return (object, old) =>
    admission.validate(admissionAttributes(given, "UPDATE", object, old, options));
}

/** POST: creates an object, or a subresource of a named one (apiserver: handlers/create.go). */

import {
  inNamespace,
  type KubeObject,
  storageWith,
  type ValidateObject,
  type WriteOptions,
  withoutSystemFields,
} from "@quorate/kube-storage";
import { readObject } from "./read-body.ts";
import {
  admissionAttributes,
  dedupedOwners,
  type HandlerDeps,
  namespaceFor,
  type ResourceCall,
  reportStrictErrors,
} from "./resource-call.ts";
import { sendObject } from "./send-object.ts";
import { optionsObject, writeOptionsOf } from "./write-options.ts";

export async function create(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, resource, ctx, form } = given;
  const options = writeOptionsOf(call.query, "CreateOptions", call.userAgent);
  const read = await readObject(call, resource, deps.clock);
  reportStrictErrors(ctx, resource, read.strictErrors, options.fieldValidation);
  call.audit?.request(read.object, read.sizeBytes);
  let object = inNamespace(withoutSystemFields(read.object), namespaceFor(resource, ctx));
  object = dedupedOwners(object, ctx, false);
  const { target } = given;
  const name = target.name || (object.metadata.name ?? "");
  // A namespace is in itself, for admission.
  const isNamespace = resource.group === "" && resource.resource === "namespaces";
  const namespace = isNamespace && target.namespace === "" ? name : target.namespace;
  const named = { name, namespace };
  const admitted = { object: optionsObject("CreateOptions", call.query), dryRun: options.dryRun };
  const manager = deps.fieldManagers.of(resource);
  const nowMs = deps.clock.wallMs();
  const { fieldManager } = options;
  object = await manager.update(undefined, object, fieldManager, resource.subresource, nowMs);
  object = await mutated(object, given, deps, admitted, named);
  object = dedupedOwners(object, ctx, true);
  const validate: ValidateObject = (it) =>
    deps.admission.validate(admissionAttributes(given, "CREATE", it, undefined, admitted, named));
  const created = await stored(given, object, validate, options);
  await sendObject(call, deps, resource, form, 201, { object: () => created });
}

async function mutated(
  object: KubeObject,
  given: ResourceCall,
  { admission }: HandlerDeps,
  options: { readonly object: unknown; readonly dryRun: boolean },
  named: { readonly name: string; readonly namespace: string },
): Promise<KubeObject> {
  const attributes = admissionAttributes(given, "CREATE", object, undefined, options, named);
  return (await admission.mutate(attributes)) ?? object;
}

function stored(
  { resource, ctx, target }: ResourceCall,
  object: KubeObject,
  validate: ValidateObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { storage } = resource;
  if (resource.subresource === "")
    return storageWith(storage, "create").create(ctx, object, validate, options);
  const named = storageWith(storage, "createNamed");
  return named.createNamed(ctx, target.name, object, validate, options);
}

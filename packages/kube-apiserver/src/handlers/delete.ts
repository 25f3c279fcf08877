/** DELETE of one object and of a collection (apiserver: handlers/delete.go). */

import {
  badRequest,
  metaProtobuf,
  type Status,
  storageWith,
  type ValidateObject,
} from "@quorate/kube-storage";
import { listRequestOf } from "./list-options.ts";
import { bodyEncoding } from "./negotiation.ts";
import { parseText } from "./read-body.ts";
import { admissionAttributes, type HandlerDeps, type ResourceCall } from "./resource-call.ts";
import { sendList } from "./send-list.ts";
import { sendObject } from "./send-object.ts";
import { deleteOptionsOf, type ParsedDeleteOptions } from "./write-options.ts";

export async function deleteOne(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx, form } = given;
  const { name } = target;
  const parsed = await readOptions(given, deps);
  const { result, deletedNow } = await storageWith(resource.storage, "delete").delete(
    ctx,
    name,
    validateDelete(given, deps, parsed),
    parsed.options,
  );
  const isCascading = parsed.options.orphanDependents === false;
  const status = !deletedNow && isCascading ? 202 : 200;
  const object = result ?? success(status, { name, kind: resource.kind.kind });
  await sendObject(call, deps, resource, form, status, { object: () => object });
}

export async function deleteCollection(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx, form } = given;
  const { query } = call;
  if (resource.namespaced && target.namespace === "")
    throw badRequest("Namespace parameter required.");
  const isWatch = query.flag("watch") === true;
  const selected = listRequestOf(query, "", isWatch, deps.takesShards);
  const parsed = await readOptions(given, deps);
  const validate = validateDelete(given, deps, parsed);
  const storage = storageWith(resource.storage, "deleteCollection");
  const list = await storage.deleteCollection(ctx, validate, parsed.options, selected);
  await sendList(call, deps, resource, form, list);
}

function success(code: number, details: Status["details"]): Status {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details, code };
}

async function readOptions(
  { call }: ResourceCall,
  deps: HandlerDeps,
): Promise<ParsedDeleteOptions> {
  const bytes = await call.body();
  if (bytes.length === 0) return deleteOptionsOf(undefined, call.query);
  const encoding = bodyEncoding(call.header("content-type"), ["json", "yaml", "protobuf"]);
  let value: unknown;
  try {
    value =
      encoding === "protobuf"
        ? metaProtobuf.decode("DeleteOptions", metaProtobuf.unwrap(bytes).message)
        : (await parseText(bytes, encoding, deps.clock)).value;
  } catch (error) {
    throw badRequest((error as Error).message);
  }
  const parsed = deleteOptionsOf(value, call.query);
  call.audit?.requestOptions(parsed.object as object, bytes.length);
  return parsed;
}

/** Admission of a deletion; the deleted object is the old one. */
function validateDelete(
  given: ResourceCall,
  { admission }: HandlerDeps,
  { object: options, options: { dryRun } }: ParsedDeleteOptions,
): ValidateObject {
  return async (old) => {
    const { name, namespace } = given.target;
    const named = { name: name || (old.metadata.name ?? ""), namespace };
    const admitted = { object: options, dryRun };
    const attributes = admissionAttributes(given, "DELETE", undefined, old, admitted, named);
    await admission.mutate(attributes);
    await admission.validate(attributes);
  };
}

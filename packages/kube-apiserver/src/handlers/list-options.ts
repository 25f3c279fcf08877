/**
 * Options of get, list and watch from the query (apimachinery: apis/meta/v1 ListOptions,
 * internalversion/validation; apiserver: handlers/get.go listOpts).
 */
import {
  badRequest,
  EVERYTHING,
  type FieldError,
  fieldForbidden,
  invalid,
  notSupported,
  parseFieldSelector,
  parseLabelSelector,
  type RestListOptions,
  type Selector,
} from "@quorate/kube-storage";
import { parseShardSelector } from "./shard-selector.ts";
import type { Query } from "./target.ts";

const META = { group: "meta.k8s.io" };

/**
 * Reads and checks the options of a list or watch. Throws ApiError 400 and 422.
 * @param name of the object in the path or "": one object as a list or watch
 * @param isWatch as the request was authorized
 * @param takesShards whether shardSelector counts; it is passed over otherwise
 */
export function listRequestOf(
  query: Query,
  name: string,
  isWatch: boolean,
  takesShards: boolean,
): RestListOptions {
  let sendInitialEvents = query.has("sendInitialEvents")
    ? query.flag("sendInitialEvents")
    : undefined;
  let match = query.first("resourceVersionMatch");
  const resourceVersion = query.first("resourceVersion");
  const continueToken = query.first("continue");
  if (isWatch && sendInitialEvents === undefined && match === "") {
    // Watches without a revision begin with the present objects, as since 1.32.
    if (resourceVersion === "" || resourceVersion === "0") {
      sendInitialEvents = true;
      match = "NotOlderThan";
    }
  }
  const errors = isWatch
    ? watchErrors(match, sendInitialEvents, continueToken)
    : listErrors(match, resourceVersion, continueToken, sendInitialEvents);
  if (errors.length > 0) throw invalid({ ...META, kind: "ListOptions" }, "", errors);
  const shards = takesShards ? query.first("shardSelector") : "";
  return {
    predicate: {
      label: parsed(query.first("labelSelector"), parseLabelSelector),
      field: fieldSelector(query.first("fieldSelector"), name),
      shard: shards === "" ? undefined : parseShardSelector(shards),
      limit: integer(query, "limit") ?? 0,
      continueToken,
      allowWatchBookmarks: query.flag("allowWatchBookmarks") ?? false,
    },
    resourceVersion,
    resourceVersionMatch: match as RestListOptions["resourceVersionMatch"],
    timeoutSeconds: integer(query, "timeoutSeconds"),
    sendInitialEvents,
  };
}

function parsed(text: string, parse: (text: string) => Selector): Selector {
  if (text === "") return EVERYTHING;
  try {
    return parse(text);
  } catch (error) {
    throw badRequest((error as Error).message);
  }
}

function fieldSelector(text: string, name: string): Selector {
  const selector = parsed(text, parseFieldSelector);
  if (name === "") return selector;
  if (selector.isEmpty) return parsed(`metadata.name=${name}`, parseFieldSelector);
  if (selector.exactValue("metadata.name") !== name)
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  return selector;
}

/** A whole number, as Go's strconv reads it; undefined where it is absent or empty. */
export function integer(query: Query, name: string): number | undefined {
  const text = query.first(name);
  if (text === "") return undefined;
  const value = /^[+-]?\d{1,18}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
}

const MATCH = "resourceVersionMatch";

function listErrors(
  match: string,
  resourceVersion: string,
  continueToken: string,
  sendInitialEvents: boolean | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  if (match !== "") {
    if (resourceVersion === "")
      errors.push(
        fieldForbidden(MATCH, `${MATCH} is forbidden unless resourceVersion is provided`),
      );
    if (continueToken !== "")
      errors.push(fieldForbidden(MATCH, `${MATCH} is forbidden when continue is provided`));
    if (match !== "Exact" && match !== "NotOlderThan")
      errors.push(notSupported(MATCH, match, ["Exact", "NotOlderThan", ""]));
    if (match === "Exact" && resourceVersion === "0")
      errors.push(fieldForbidden(MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`));
  }
  if (sendInitialEvents !== undefined)
    errors.push(fieldForbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  return errors;
}

function watchErrors(
  match: string,
  sendInitialEvents: boolean | undefined,
  continueToken: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== "NotOlderThan")
    errors.push(
      fieldForbidden(MATCH, `sendInitialEvents requires setting ${MATCH} to NotOlderThan`),
    );
  if (match === "") return errors;
  if (sendInitialEvents === undefined) {
    const why = `${MATCH} is forbidden for watch unless sendInitialEvents is provided`;
    errors.push(fieldForbidden(MATCH, why));
  }
  if (match !== "NotOlderThan") errors.push(notSupported(MATCH, match, ["NotOlderThan"]));
  if (continueToken !== "")
    errors.push(fieldForbidden(MATCH, `${MATCH} is forbidden when continue is provided`));
  return errors;
}

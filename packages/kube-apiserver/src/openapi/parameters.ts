/** Query and path parameters of API requests, with descriptions of our own. */

export interface Parameter {
  readonly name: string;
  readonly in: "query" | "path";
  readonly type: "string" | "boolean" | "integer";
  readonly description: string;
}

function query(name: string, type: Parameter["type"], description: string): Parameter {
  return { name, in: "query", type, description };
}

const PARAMETERS: readonly Parameter[] = [
  query("allowWatchBookmarks", "boolean", "A watch may send BOOKMARK events."),
  query("continue", "string", "The continue token of the page before."),
  query("dryRun", "string", 'With "All", the request is checked but nothing is stored.'),
  query("fieldManager", "string", "The name under which managedFields lists this client."),
  query("fieldSelector", "string", "Only objects with these values in fields."),
  query(
    "fieldValidation",
    "string",
    "What happens with unknown and duplicate fields: Ignore, Warn or Strict.",
  ),
  query("force", "boolean", "Apply takes fields from other managers. Only for apply."),
  query("gracePeriodSeconds", "integer", "Seconds for a graceful end; 0 deletes at once."),
  query("labelSelector", "string", "Only objects with these labels."),
  query("limit", "integer", "The largest number of objects in a page."),
  query("orphanDependents", "boolean", "No longer in use; see propagationPolicy."),
  query("pretty", "string", "If true, JSON is indented."),
  query(
    "propagationPolicy",
    "string",
    "What happens to owned objects: Orphan, Background or Foreground.",
  ),
  query("resourceVersion", "string", "The version that is read, or from which a watch begins."),
  query("resourceVersionMatch", "string", "NotOlderThan or Exact."),
  query("sendInitialEvents", "boolean", "A watch begins with the present objects."),
  query("shardSelector", "string", "Only objects of this shard, where the server knows shards."),
  query("timeoutSeconds", "integer", "Seconds after which the request ends."),
  query("watch", "boolean", "Sends changes instead of a list."),
  { name: "name", in: "path", type: "string", description: "The name of the object." },
  { name: "namespace", in: "path", type: "string", description: "The namespace of the object." },
];

const byName = new Map(PARAMETERS.map((each) => [each.name, each]));

/** A parameter by its name. Throws RangeError for an unknown one. */
export function parameter(name: string): Parameter {
  const found = byName.get(name);
  if (found === undefined) throw new RangeError(`no parameter ${name}`);
  return found;
}

export const LIST_PARAMETERS: readonly string[] = [
  "allowWatchBookmarks",
  "continue",
  "fieldSelector",
  "labelSelector",
  "limit",
  "resourceVersion",
  "resourceVersionMatch",
  "sendInitialEvents",
  "shardSelector",
  "timeoutSeconds",
  "watch",
];

export const DELETE_PARAMETERS: readonly string[] = [
  "dryRun",
  "gracePeriodSeconds",
  "orphanDependents",
  "propagationPolicy",
];

export const DELETE_COLLECTION_PARAMETERS: readonly string[] = [
  ...DELETE_PARAMETERS,
  ...LIST_PARAMETERS.filter((name) => name !== "allowWatchBookmarks" && name !== "watch"),
].sort();

export const WRITE_PARAMETERS: readonly string[] = ["dryRun", "fieldManager", "fieldValidation"];

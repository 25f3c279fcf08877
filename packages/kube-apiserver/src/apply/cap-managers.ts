/** Bounds the entries of an object (util/managedfields/internal/capmanagers.go). */
import { defined } from "@quorate/proto";
import { EMPTY_SET, FieldSetBuilder } from "./field-set.ts";
import { compareText } from "./go-text.ts";
import { type Managed, managerId, secondsOf, type VersionedSet } from "./managed-fields.ts";

/** Entries of writes other than apply. Beyond it, the oldest are merged into one per version. */
export const MAX_UPDATE_MANAGERS = 10;

const BUCKET = "ancient-changes";

/** Merges the oldest entries of updates until there are at most MAX_UPDATE_MANAGERS. */
export function capUpdateManagers(managed: Managed): Managed {
  const updaters = [...managed.managers].flatMap(([id, { applied }]) =>
    applied ? [] : [{ id, seconds: secondsOf(managed.times.get(id)) }],
  );
  if (updaters.length <= MAX_UPDATE_MANAGERS) return managed;
  const managers = new Map(managed.managers);
  const times = new Map(managed.times);
  updaters.sort((a, b) => a.seconds - b.seconds || compareText(a.id, b.id));
  // What a bucket holds is collected in place: a union for each entry would copy it each time.
  const buckets = new Map<string, FieldSetBuilder>();
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const { id } of updaters) {
    if (count <= MAX_UPDATE_MANAGERS) break;
    const versioned = defined(managers.get(id), "the manager");
    const { apiVersion } = versioned;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, id);
      continue;
    }
    const bucket = managerId({ manager: BUCKET, operation: "Update", apiVersion });
    // Where the bucket is the later one of both, Kubernetes loses what it held.
    const other = id === bucket ? first : id;
    if (!managers.has(bucket)) renameManager(managers, first, bucket);
    let builder = buckets.get(bucket);
    if (builder === undefined) {
      builder = new FieldSetBuilder();
      builder.insertAll(defined(managers.get(bucket), "the manager").set);
      buckets.set(bucket, builder);
    }
    builder.insertAll(defined(managers.get(other), "the manager").set);
    managers.set(bucket, { ...versioned, set: EMPTY_SET });
    managers.delete(other);
    count--;
    const time = times.get(id);
    if (time === undefined) times.delete(bucket);
    else times.set(bucket, time);
  }
  for (const [id, builder] of buckets) {
    const bucket = defined(managers.get(id), "the bucket");
    managers.set(id, { ...bucket, set: builder.build() });
  }
  return { managers, times };
}

function renameManager(managers: Map<string, VersionedSet>, from: string, to: string): void {
  const versioned = defined(managers.get(from), "the manager");
  managers.delete(from);
  managers.set(to, versioned);
}

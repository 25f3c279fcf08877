// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text with templates in it
/** Bugs in what the requests of KV mean: one or more for each thing that clients can ask for. */
import type { Mutant } from "./mutant.ts";

const RANGE = "store/src/requests/range.ts";
const COMPARE = "store/src/requests/compare.ts";
const TXN = "store/src/requests/txn.ts";
const PUT = "store/src/requests/put.ts";

/** Runs in which clients use all that requests can express. */
const WIDE = { wholeApi: true, faultPhaseMs: 2500 };

function mutant(name: string, file: string, before: string, after: string): Mutant {
  return { name, file, before, after, tests: ["packages/store/test/mvcc*.test.ts"], sim: WIDE };
}

export const REQUESTS: readonly Mutant[] = [
  mutant(
    "a descending order is an ascending one",
    RANGE,
    "const sign = request.sortOrder === Order.DESCEND ? -1 : 1;",
    "const sign = 1;",
  ),
  mutant(
    "a sort without an order looks at all keys, not at the first",
    RANGE,
    "request.limit > 0 && request.sortOrder === Order.NONE && !hasRevisionBounds(request);",
    "request.limit < 0 && request.sortOrder === Order.NONE && !hasRevisionBounds(request);",
  ),
  mutant(
    "a limited range counts what it returns",
    RANGE,
    "return { more: true, count: count + (yield* view.count({ ...keys, key: `${last}\\0` }, at)) };",
    "return { more: true, count };",
  ),
  mutant(
    "a limited range does not say that there is more",
    RANGE,
    "return { revision, more: limit > 0 && rows.total > limit, count };",
    "return { revision, more: limit > 0 && rows.total > limit + 1, count };",
  ),
  mutant(
    "beyond the limit, the latest creation of a key is taken for the one of the past",
    RANGE,
    "if (isCreatedAsked && given >= most) return !isLatest(index, at);",
    "if (isCreatedAsked && given >= most) return false;",
  ),
  mutant(
    "keys alone come with their values where a record is read",
    RANGE,
    "    else into.push(keysOnly ? withoutValue(record) : record);\n    return true;",
    "    else into.push(record);\n    return true;",
  ),
  mutant(
    "the least revision of a change is out of bounds",
    RANGE,
    "(request.minModRevision === 0 || mod >= request.minModRevision)",
    "(request.minModRevision === 0 || mod > request.minModRevision)",
  ),
  mutant(
    "the greatest revision of a change is out of bounds",
    RANGE,
    "(request.maxModRevision === 0 || mod <= request.maxModRevision) &&",
    "(request.maxModRevision === 0 || mod < request.maxModRevision) &&",
  ),
  mutant(
    "the least created revision is out of bounds",
    RANGE,
    "return request.minCreateRevision === 0 || created >= request.minCreateRevision;",
    "return request.minCreateRevision === 0 || created > request.minCreateRevision;",
  ),
  mutant(
    "the greatest created revision is out of bounds",
    RANGE,
    "if (request.maxCreateRevision !== 0 && created > request.maxCreateRevision) return false;",
    "if (request.maxCreateRevision !== 0 && created >= request.maxCreateRevision) return false;",
  ),
  mutant(
    "a read at a revision in the past reads the one after it",
    "store/src/mvcc/read-view.ts",
    '    if (at < this.compactRevision) throw errorOf("Compacted");\n    return at;',
    '    if (at < this.compactRevision) throw errorOf("Compacted");\n    return Math.min(at + 1, this.revision);',
  ),
  mutant(
    "the compact revision itself cannot be read",
    "store/src/mvcc/read-view.ts",
    '    if (at < this.compactRevision) throw errorOf("Compacted");\n    return at;',
    '    if (at <= this.compactRevision) throw errorOf("Compacted");\n    return at;',
  ),
  mutant(
    "a comparison of a value holds for a key that does not exist",
    COMPARE,
    "return one.target !== Target.VALUE && isResult(one.result, compareMissing(one));",
    "return isResult(one.result, compareMissing(one));",
  ),
  mutant(
    "a comparison with the lease takes every key for one without",
    COMPARE,
    "return compareBig(kv?.lease ?? 0n, wantedLease(one));",
    "return compareBig(0n, wantedLease(one));",
  ),
  mutant(
    "greater is greater or equal",
    COMPARE,
    "      return compared > 0;",
    "      return compared >= 0;",
  ),
  mutant(
    "less is less or equal",
    COMPARE,
    "      return compared < 0;",
    "      return compared <= 0;",
  ),
  mutant(
    "a nested transaction runs the branch of the outer one",
    TXN,
    "  return { succeeded, ops, nested };\n}\n\n/** The number of ranges",
    "  for (const plan of nested) Object.assign(plan, { succeeded });\n" +
      "  return { succeeded, ops, nested };\n}\n\n/** The number of ranges",
  ),
  mutant(
    "a put that keeps its lease loses it",
    PUT,
    "      if (request.ignoreLease) lease = before.lease;",
    "      if (request.ignoreLease) lease = 0n;",
  ),
  mutant(
    "a put that keeps its value loses it",
    PUT,
    "      if (request.ignoreValue) value = before.value;",
    "",
  ),
  mutant(
    "a key that is to keep its value need not exist",
    TXN,
    '        throw errorOf("KeyNotFound");\n      effects.push',
    '        throw errorOf("LeaseNotFound");\n      effects.push',
  ),
  mutant(
    "the previous value of a put is left out",
    PUT,
    "    if (request.prevKv) prevKv = record;",
    "",
  ),
  mutant(
    "the previous values of a deleted range are left out",
    "store/src/requests/delete-range.ts",
    "request.prevKv && answered ? (yield* txn.records(keys, txn.revision, 0)).records : [];",
    "request.prevKv && answered ? (yield* txn.records(keys, txn.revision, 1)).records : [];",
  ),
];

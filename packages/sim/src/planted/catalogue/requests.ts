/** Bugs in what the requests of KV mean: one or more for each thing that clients can ask for. */
import type { CatalogueBug } from "../source-edit.ts";

const KV = {
  tests: ["packages/store/test/mvcc*.test.ts"],
  // Clients use all that requests can express.
  sim: { wholeApi: true, faultPhaseMs: 2500 },
};

export const REQUEST_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "a descending order is an ascending one": {
    at: "store/src/requests/range.ts#collectorFor",
    find: "$request.sortOrder === Order.DESCEND ? -1 : 1",
    put: "1",
    ...KV,
  },
  "a sort without an order looks at all keys, not at the first": {
    at: "store/src/requests/range.ts#collect",
    find: "$request.limit > 0",
    put: "$request.limit < 0",
    ...KV,
  },
  "a limited range counts what it returns": {
    at: "store/src/requests/range.ts#inKeyOrder",
    find: "{ more: true, count: $count + $rest }",
    put: "{ more: true, count: $count }",
    ...KV,
  },
  "a limited range does not say that there is more": {
    at: "store/src/requests/range.ts#rangeInto",
    find: "$rows.total > $limit",
    put: "$rows.total > $limit + 1",
    ...KV,
  },
  "beyond the limit, the latest creation of a key is taken for the one of the past": {
    at: "store/src/requests/range.ts#inKeyOrder",
    find: "!isLatest($index, $at)",
    put: "false",
    ...KV,
  },
  "keys alone come with their values where a record is read": {
    at: "store/src/requests/range.ts#inKeyOrder",
    find: "$keysOnly ? withoutValue($record) : $record",
    put: "$record",
    ...KV,
  },
  "the least revision of a change is out of bounds": {
    at: "store/src/requests/range.ts#isWithinModBounds",
    find: "$mod >= $request.minModRevision",
    put: "$mod > $request.minModRevision",
    ...KV,
  },
  "the greatest revision of a change is out of bounds": {
    at: "store/src/requests/range.ts#isWithinModBounds",
    find: "$mod <= $request.maxModRevision",
    put: "$mod < $request.maxModRevision",
    ...KV,
  },
  "the least created revision is out of bounds": {
    at: "store/src/requests/range.ts#isWithinBounds",
    find: "$created >= $request.minCreateRevision",
    put: "$created > $request.minCreateRevision",
    ...KV,
  },
  "the greatest created revision is out of bounds": {
    at: "store/src/requests/range.ts#isWithinBounds",
    find: "$created > $request.maxCreateRevision",
    put: "$created >= $request.maxCreateRevision",
    ...KV,
  },
  "a read at a revision in the past reads the one after it": {
    at: "store/src/mvcc/read-view.ts#ReadView.resolve",
    find: "return $at;",
    put: "return Math.min($at + 1, this.revision);",
    ...KV,
  },
  "the compact revision itself cannot be read": {
    at: "store/src/mvcc/read-view.ts#ReadView.resolve",
    find: "$at < this.compactRevision",
    put: "$at <= this.compactRevision",
    ...KV,
  },
  "a comparison of a value holds for a key that does not exist": {
    at: "store/src/requests/txn.ts#holdsForNone",
    find: "$one.target !== Target.VALUE && isResult($one.result, compareMissing($one))",
    put: "isResult($one.result, compareMissing($one))",
    ...KV,
  },
  "a comparison with the lease takes every key for one without": {
    at: "store/src/requests/txn.ts#compareFound",
    find: "$kv?.lease ?? 0n",
    put: "0n",
    ...KV,
  },
  "greater is greater or equal": {
    at: "store/src/requests/txn.ts#isResult",
    find: "$compared > 0",
    put: "$compared >= 0",
    ...KV,
  },
  "less is less or equal": {
    at: "store/src/requests/txn.ts#isResult",
    find: "$compared < 0",
    put: "$compared <= 0",
    ...KV,
  },
  "a nested transaction runs the branch of the outer one": {
    at: "store/src/requests/txn.ts#decide",
    find: "return { succeeded: $succeeded, ops: $ops, nested: $nested };",
    put: `
      for (const plan of $nested) Object.assign(plan, { succeeded: $succeeded });
      return { succeeded: $succeeded, ops: $ops, nested: $nested };`,
    ...KV,
  },
  "a put that keeps its lease loses it": {
    at: "store/src/requests/put.ts#put",
    find: "$before.lease",
    put: "0n",
    ...KV,
  },
  "a put that keeps its value loses it": {
    at: "store/src/requests/put.ts#put",
    find: "if ($request.ignoreValue) $value = $before.value;",
    put: "",
    ...KV,
  },
  "a key that is to keep its value need not exist": {
    at: "store/src/requests/txn.ts#checkOp",
    find: 'errorOf("KeyNotFound")',
    put: 'errorOf("LeaseNotFound")',
    ...KV,
  },
  "the previous value of a put is left out": {
    at: "store/src/requests/put.ts#put",
    find: "if ($request.prevKv) $prevKv = $record;",
    put: "",
    ...KV,
  },
  "the previous values of a deleted range are left out": {
    at: "store/src/requests/delete-range.ts#deleteRange",
    find: "$txn.records($keys, $txn.revision, 0)",
    put: "$txn.records($keys, $txn.revision, 1)",
    ...KV,
  },
};

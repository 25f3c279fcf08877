/**
 * Random requests of etcd's KV service: few keys, so that they meet; every option; a share that
 * must be refused.
 *
 * Two kinds of transaction are left out, because etcd 3.4 does not survive them
 * (test/e2e/hostile-requests.test.ts sends them to ours): a range inside a transaction at a
 * revision that cannot be read, upon which its members part ways, and a put with ignore_value of a
 * key that the same transaction deletes, upon which they panic.
 */
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromLatin1,
  KVService,
  type MethodDescriptor,
  PutRequest,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RequestOp,
  TxnRequest,
} from "@quorate/proto";
import type { SeededRandom } from "./random.ts";

/** One request to be sent. */
export interface Step {
  readonly method: MethodDescriptor;
  readonly request: object;
}

const keys = ["a", "aa", "ab", "a/1", "a/2", "b", "b/1", "b/2", "c", "\0", "\xff", "\xff\xff", "z"];
const rangeEnds = [...keys, "\0", "\0", "b/", "b0", "d"];
const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;
const maxNesting = 2;

/** Which revisions the store has. */
export interface Revisions {
  /** The newest. */
  readonly current: number;
  /** The oldest that can be read. */
  readonly compacted: number;
}

/** The next request, given the store's revisions in the responses so far. */
export function nextStep(random: SeededRandom, revisions: Revisions): Step {
  const revision = revisions.current;
  const dice = random.below(100);
  if (dice < 40) return { method: Put, request: randomPut(random, true) };
  if (dice < 52) return { method: DeleteRange, request: randomDelete(random) };
  if (dice < 75) return { method: Range, request: randomRange(random, revision, 0, revision + 2) };
  if (dice < 97) return { method: Txn, request: randomTxn(random, revisions, random.oneIn(2), 0) };
  return {
    method: Compact,
    request: { revision: random.below(revision + 2), physical: random.oneIn(2) },
  };
}

const randomKey = (random: SeededRandom): Uint8Array =>
  fromLatin1(random.oneIn(150) ? "" : random.pick(keys));
const randomEnd = (random: SeededRandom, oneIn: number): Uint8Array =>
  fromLatin1(random.oneIn(oneIn) ? random.pick(rangeEnds) : "");

function randomPut(random: SeededRandom, mayIgnoreValue: boolean): PutRequest {
  const ignoreValue = mayIgnoreValue && random.oneIn(12);
  const length = random.oneIn(40) ? 3000 : random.below(20);
  const value =
    ignoreValue && !random.oneIn(8)
      ? ""
      : String.fromCharCode(33 + random.below(200)).repeat(length);
  return PutRequest.create({
    key: randomKey(random),
    value: fromLatin1(value),
    prevKv: random.oneIn(3),
    ignoreValue,
  });
}

function randomDelete(random: SeededRandom): DeleteRangeRequest {
  return DeleteRangeRequest.create({
    key: randomKey(random),
    rangeEnd: randomEnd(random, 4),
    prevKv: random.oneIn(2),
  });
}

/** A range at a revision from `oldest` to `newest`, or at the current one. */
function randomRange(
  random: SeededRandom,
  revision: number,
  oldest: number,
  newest: number,
): RangeRequest {
  const bound = (): number => (random.oneIn(6) ? 1 + random.below(revision + 1) : 0);
  return RangeRequest.create({
    key: randomKey(random),
    rangeEnd: randomEnd(random, 2),
    limit: random.oneIn(3) ? random.below(6) : 0,
    revision: random.oneIn(2) ? 0 : oldest + random.below(newest - oldest + 1),
    sortOrder: random.pick(Object.values(RangeRequest_SortOrder)),
    sortTarget: random.pick(Object.values(RangeRequest_SortTarget)),
    keysOnly: random.oneIn(6),
    countOnly: random.oneIn(8),
    minModRevision: bound(),
    maxModRevision: bound(),
    minCreateRevision: bound(),
    maxCreateRevision: bound(),
  });
}

function randomCompare(random: SeededRandom, revision: number): Compare {
  const target = random.pick(Object.values(Compare_CompareTarget));
  const near = 1 + random.below(revision + 1);
  const operand: Compare["targetUnion"] =
    target === Compare_CompareTarget.VERSION
      ? { case: "version", value: random.below(4) }
      : target === Compare_CompareTarget.CREATE
        ? { case: "createRevision", value: random.oneIn(2) ? 0 : near }
        : target === Compare_CompareTarget.MOD
          ? { case: "modRevision", value: random.oneIn(2) ? 0 : near }
          : target === Compare_CompareTarget.VALUE
            ? { case: "value", value: fromLatin1(String.fromCharCode(33 + random.below(200))) }
            : { case: "lease", value: BigInt(random.below(2)) };
  return {
    target,
    result: random.pick(Object.values(Compare_CompareResult)),
    key: randomKey(random),
    rangeEnd: randomEnd(random, 5),
    targetUnion: operand,
  };
}

function randomTxn(
  random: SeededRandom,
  revisions: Revisions,
  mayDelete: boolean,
  nesting: number,
): TxnRequest {
  const some = <T>(most: number, make: () => T): T[] =>
    Array.from({ length: random.below(most + 1) }, make);
  return TxnRequest.create({
    compare: some(2, () => randomCompare(random, revisions.current)),
    success: some(3, () => randomOp(random, revisions, mayDelete, nesting)),
    failure: some(3, () => randomOp(random, revisions, mayDelete, nesting)),
  });
}

function randomOp(
  random: SeededRandom,
  revisions: Revisions,
  mayDelete: boolean,
  nesting: number,
): RequestOp {
  const dice = random.below(10);
  if (dice < 2 && nesting < maxNesting)
    return {
      request: { case: "requestTxn", value: randomTxn(random, revisions, mayDelete, nesting + 1) },
    };
  if (dice < 4) {
    const { current, compacted } = revisions;
    return {
      request: {
        case: "requestRange",
        value: randomRange(random, current, Math.max(compacted, 1), current),
      },
    };
  }
  if (dice < 6 && mayDelete)
    return { request: { case: "requestDeleteRange", value: randomDelete(random) } };
  return { request: { case: "requestPut", value: randomPut(random, !mayDelete) } };
}

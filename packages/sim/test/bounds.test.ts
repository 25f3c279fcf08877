/**
 * A bug at a bound hides for as long as no run meets the bound. So each bound of a member is drawn
 * small in some seeds, or has its reason here. A bound that the types of members hold is drawn by
 * `step-limits.ts`, which would not compile without it; what is left are constants of modules.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MEMBER_BOUNDS, WATCH_LIMITS } from "@quorate/member";
import { DEFAULT_ANSWER_LIMITS, SLICE_LIMITS } from "@quorate/member/testing";
import { optionsOf } from "../src/base/options.ts";
import {
  applyLimitsOf,
  batchOpsOf,
  boundsOf,
  memoryLimitsOf,
  sliceLimitsOf,
} from "../src/step-limits.ts";

const PACKAGES = join(import.meta.dirname, "../..");
/** Packages that a member is made of. */
const SOURCES = "{raft,wal,store,member,services,transport}/src/**/*.ts";
/** A number of something: times are in docs/internals/timers.md. */
const CONSTANT = /^(?:export )?const ([A-Z][A-Z0-9_]*)(?:: number)? =\s*([^;]*);/gm;
const NUMERIC = /^[-\d._\s*+/()<]*(?:[A-Z][A-Z0-9_]*[-\d._\s*+/()<]*)*$/;
const BOUND =
  /(?:^|_)(?:MAX|MIN|MOST|LEAST|FEW|SMALL|LARGE|SHORT|STEP|SLICE|BATCH|CHUNK|WINDOW|BYTES|CHARS|KEYS|RECORDS|LOOKS|LOOK_EVERY|STEPS)(?:_|$)/;

/** Constants that no run draws: why, and which, by their file below packages. */
const NOT_DRAWN: Readonly<Record<string, readonly string[]>> = {
  "a size within a format, or of an encoding": [
    "member/src/lease/renew-batches.ts WORD_BYTES",
    "raft/src/reads.ts CONTEXT_BYTES",
    "store/src/backend/live-bytes.ts RECORD_BYTES PREFIX_BYTES",
    "store/src/mvcc/restore.ts BUCKET_BYTES",
    "store/src/mvcc/revision.ts REVISION_BYTES TOMBSTONE_BYTES",
    "transport/src/frames.ts PREFIX_BYTES",
    "transport/src/plain-fields.ts MAX_LENGTH_BYTES",
    "wal/src/encoder.ts MAX_OVERHEAD_BYTES MAX_CRC_BYTES",
    "wal/src/format.ts SECTOR_BYTES WORD_BYTES MARK_BYTES",
    "wal/src/frame.ts MAX_RECORD_HEAD_BYTES",
    "services/src/v3/request-work.ts MAX_FIELD_NUMBER",
  ],
  "what is exact in a number, or in a request: beyond it all refuse alike (raft/test/check)": [
    "raft/src/interface.ts MAX_TERM MAX_INDEX",
    "raft/src/message.ts MAX_TERM_LEAP",
    "store/src/mvcc/record-cache.ts MAX_SUB",
    "member/src/reads/answer-memory.ts MAX_MESSAGE_BYTES",
    "services/src/v3/range-stream.ts MAX_CHUNK_REQUESTS",
  ],
  "an estimate of memory or work that a bound counts with": [
    "raft/src/log.ts ENTRY_OVERHEAD_BYTES",
    "store/src/mvcc/record-cache.ts OVERHEAD_BYTES",
    "store/src/requests/cost.ts KEY_OVERHEAD_BYTES LEASE_COST_BYTES",
    "store/src/requests/range.ts ROW_BYTES",
    "store/src/mvcc/compaction.ts KEYS_PER_RECORD",
    "member/src/watch/event.ts OBJECT_BYTES",
    "member/src/watch/limits.ts WATCH_BYTES",
    "member/src/watch/watch-hub.ts GRPC_OVERHEAD_BYTES",
    "member/src/watch/watch-stream.ts RESPONSE_BYTES REFERENCE_BYTES",
    "services/src/concurrency/contest.ts CONTESTANT_BYTES",
  ],
  "a share of the machine, and runs have none": [
    "member/src/config/budgets.ts UNKNOWN_MEMORY_BYTES LEAST_MEMORY_BYTES MAX_BUDGETED_THOUSANDTHS",
    "member/src/config/budgets.ts MAX_STORE_FILES MAX_CLIENT_CONNECTIONS MAX_HTTP_CONNECTIONS",
    "member/src/config/budgets.ts MAX_PEER_CONNECTIONS LEAST_CONNECTIONS",
  ],
  "the start value of an option that runs draw": [
    "store/src/backend/backend.ts MAX_PENDING_OPS",
    "store/src/backend/steps.ts STEP_KEYS",
    "store/src/membership/membership.ts DEFAULT_MAX_LEARNERS",
    "wal/src/format.ts SEGMENT_BYTES",
  ],
  "the most that one member takes from another, which sends less: what is beyond is hostile": [
    "member/src/lease/renew-batches.ts MAX_BATCH_LEASES",
    "member/src/loop/limits.ts MAX_WAITING_PROPOSALS",
    "member/src/membership/ask-members.ts MAX_LISTED_MEMBERS",
    "store/src/requests/request-table.ts MAX_CHECKPOINT_LEASES",
    "store/src/snapshot-stream.ts MAX_FRAME_BYTES",
    "transport/src/frames.ts MAX_MESSAGE_ENTRIES",
    "transport/src/tunnel.ts MAX_HEAD_BYTES WINDOW_REFILL_BYTES",
  ],
  "what a client may ask for; refusals beyond it change nothing (store/test/malformed)": [
    "store/src/auth/auth-requests.ts MAX_HASH_BYTES",
    "store/src/auth/limits.ts MAX_USERS MAX_ROLES MAX_USER_ROLES MAX_ROLE_PERMISSIONS",
    "store/src/auth/limits.ts MAX_PERMISSIONS MAX_NAME_BYTES MAX_PERMISSION_KEY_BYTES",
    "store/src/auth/limits.ts MAX_TOKEN_ROLES MAX_TOKEN_ROLE_LENGTH",
    "store/src/membership/member.ts MAX_ID_DIGITS",
    "store/src/requests/decode-txn.ts MAX_TXN_OPS_IN_ALL",
    "store/src/requests/work.ts MAX_COPIED_BYTES MAX_WRITE_ANSWER_BYTES MAX_COMPARED_RECORDS",
    "member/src/membership/member-urls.ts MAX_MEMBER_URLS MAX_MEMBER_URL_CHARS",
    "member/src/membership/reconfiguration.ts MAX_WAITING_CHANGES",
    "services/src/v3/request-work.ts MAX_REQUEST_FIELDS",
  ],
  "both sides give the same result; the bound says which is quicker (store/test/sliced-reads)": [
    "store/src/requests/decode-txn.ts COUNT_FROM_BYTES",
    "store/src/requests/kinds.ts MAX_SHORT_OPS",
    "store/src/requests/lease.ts MAX_SHORT_KEYS",
    "store/src/requests/range.ts SMALL_RANGE_BYTES",
    "services/src/v3/kv.ts LARGE_RECORD_BYTES",
    "services/src/v3/range-answer.ts MIN_PIECES_BYTES FIRST_BLOCK_BYTES MAX_BLOCK_BYTES",
    "services/src/v3/range-answer.ts MIN_OWN_PIECE_BYTES PIECE_BYTES",
    "services/src/v3/request-work.ts SMALL_REQUEST_BYTES",
    "member/src/lease/long-responses.ts MAX_SHORT_BYTES",
    "transport/src/frames.ts COUNT_FROM_BYTES MAX_GATHERED_BYTES",
    "wal/src/encoder.ts CHUNK_BYTES",
  ],
  "how much is kept in memory to be quicker, which no result shows": [
    "store/src/auth/limits.ts MAX_CACHED_INTERVALS",
    "store/src/lease/lessor.ts MAX_COPIES",
    "store/src/mvcc/pinned-view.ts MAX_KEPT_BYTES MAX_PARTS_AHEAD",
    "store/src/mvcc/record-cache.ts MAX_CACHED_BYTES MAX_CACHED_RECORD_BYTES",
    "store/src/requests/rows.ts MAX_SPARE_ROWS",
    "services/src/v3/keep-alives.ts MAX_KEPT_REQUEST_BYTES",
    "wal/src/encoder.ts INITIAL_BYTES MAX_KEPT_BYTES",
  ],
  "a bound at most: `stepKeys`, which runs draw as 1, cuts before it": [
    "store/src/lease/lease-coverage.ts MAX_LEASE_COVERAGES MAX_FORGOTTEN_KEYS",
    "store/src/mvcc/write-txn.ts MAX_KEPT_CHANGES KEPT_STEPS",
  ],
  "work on pure data between two looks at the time, with nothing that could change meanwhile": [
    "member/src/identity/auth-changes.ts CALLS_BETWEEN_LOOKS",
    "member/src/watch/watch-hub.ts EVENTS_BETWEEN_LOOKS WATCHERS_BETWEEN_LOOKS",
    "store/src/requests/rows.ts STEP_COMPARES",
    "store/src/mvcc/compaction.ts LOOK_EVERY RECORDS_OF_ONE_KEY",
    "member/src/reads/shared-turns.ts MAX_SLICE_STEPS",
  ],
  "its own test draws it, with a model beside it (mvcc-tree, mvcc-deletions, intervals)": [
    "store/src/mvcc/key-tree.ts LEAF_KEYS",
    "store/src/mvcc/tombstones.ts FIRST_RUN_KEYS MAX_RUN_KEYS",
    "store/src/auth/intervals.ts MERGE_STEPS MAX_LOOKUPS",
  ],
  "its own test meets it, and a run would take too long or does not come there": [
    "member/src/apply/flusher.ts MAX_FLUSHES",
    "member/src/apply/last-voter.ts MAX_VOTERS_AT_START",
    "member/src/damaged-store.ts MAX_DAMAGED_STORES",
    "member/src/loop/first-election.ts FIRST_ELECTION_LOOKS",
    "store/src/mvcc/hash-runs.ts MAX_WAITING_HASHES",
    "store/src/snapshot-stream.ts BATCH_BYTES",
    "services/src/v3/auth.ts MAX_LOGIN_ROUNDS",
    "services/src/v3/keep-alives.ts MAX_WAITING_KEEP_ALIVES MAX_RECHECKED_LEASES",
    "services/src/v3/range-stream.ts FIRST_CHUNK_KEYS",
    "services/src/v3/snapshot.ts MESSAGE_BYTES MAX_CLIENT_SNAPSHOTS MAX_SNAPSHOTS_OF_ONE_CLIENT",
    "services/src/v3/snapshot.ts MAX_WAITING_SNAPSHOTS MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT",
    "services/src/v3/snapshot.ts MIN_SNAPSHOT_PROGRESS_BYTES",
    "services/src/v3/streams.ts MAX_CHECKS_WITHOUT_LEADER",
    "services/src/v3/write-answer.ts MAX_RECORDS_AT_ONCE MAX_STEP_BYTES",
    "wal/src/opening.ts REWRITE_BYTES",
    "wal/src/pipeline.ts STEP_BYTES",
    "wal/src/segment-file.ts WINDOW_BYTES",
  ],
  "no run has what it bounds: files of etcd and of LevelDB, discovery, texts, logs, metrics": [
    "member/src/config/url.ts MAX_SOCKET_PATH_BYTES",
    "member/src/identity/login-limits.ts MAX_ADDRESS_CHARS MAX_COUNTED_FAILURES",
    "member/src/membership/srv-discovery.ts MAX_SRV_RECORDS MAX_NAME_CHARS",
    "member/src/membership/token-discovery.ts MAX_CLUSTER_SIZE MAX_RECORDS MAX_RECORD_CHARS",
    "member/src/membership/token-discovery.ts SHOWN_CHARS",
    "member/src/membership/versions.ts MAX_SHOWN_CHARS",
    "member/src/metrics/calls-table.ts MAX_METHODS_AND_CODES",
    "services/src/v3/client-versions.ts MAX_CLIENT_VERSIONS",
    "services/src/v3/slow-calls.ts MAX_LINES_A_SECOND",
    "store/src/etcd-file/checksum.ts SECTOR_BYTES READ_BYTES",
    "store/src/etcd-file/export.ts CHECKSUM_BYTES SLICE_BYTES LEAST_COUNTED_BYTES",
    "store/src/etcd-file/import.ts BATCH_BYTES RECORD_OVERHEAD_BYTES",
    "store/src/level-files/manifest.ts BLOCK_BYTES HEAD_BYTES MARK_BYTES",
    "store/src/level-files/records.ts MAX_OPEN_TABLES MAX_ATTEMPTS",
    "store/src/level-files/snappy.ts FEW_BYTES",
    "store/src/level-files/table-run.ts WINDOW_BYTES MARK_BYTES MAX_BLOCK_BYTES",
    "store/src/level-files/table.ts FOOT_BYTES TRAILER_BYTES MAX_INDEX_BYTES",
    "transport/src/rare-log.ts MAX_KEYS",
  ],
  "tokens and passwords of many users (server/test/auth-jwt, authority)": [
    "member/src/identity/jwt/jwt-tokens.ts MAX_TOKEN_BYTES MAX_CACHED_TOKENS",
    "member/src/identity/jwt/jwt-tokens.ts MAX_CACHED_TOKEN_BYTES MAX_RUNNING_VERIFICATIONS",
    "member/src/identity/jwt/jwt-tokens.ts MAX_NAME_LENGTH",
    "member/src/identity/jwt/key-set.ts MAX_VERIFICATION_KEYS",
    "member/src/identity/passwords.ts MAX_PASSWORD_BYTES MAX_RUNNING_HASHES MAX_WAITING_HASHES",
    "member/src/identity/passwords.ts MAX_WAITING_HASHES_OF_ONE_CLIENT",
    "member/src/identity/simple-tokens.ts MAX_TOKENS MAX_TOKENS_OF_ONE_USER MAX_SWEPT",
  ],
};

/**
 * Fields of limits that are as in the product: times, of which none passes within a turn, and what
 * refuses a client with nothing done, which no judge of a run would miss.
 */
const FIELDS_NOT_DRAWN = [
  "watch maxWatchesTotalBytes",
  "watch maxWatchesClientBytes",
  "watch maxContestTotalBytes",
  "watch maxContestClientBytes",
  "slices turnMs",
  "slices quantumMs",
  "slices maxReadMs",
  "answers totalBytes",
  "answers clientBytes",
  "answers answerBytes",
];

test("each constant that bounds something is drawn, or has its reason not to be", () => {
  const found = globSync(SOURCES, { cwd: PACKAGES }).flatMap((file) =>
    [...readFileSync(join(PACKAGES, file), "utf8").matchAll(CONSTANT)]
      .filter(([, name, value]) => NUMERIC.test(value!) && BOUND.test(name!))
      .filter(([, name]) => !/_(?:MS|SECONDS)(?:_|$)/.test(name!))
      .map(([, name]) => `${file} ${name}`),
  );
  const named = Object.values(NOT_DRAWN)
    .flat()
    .flatMap((line) => {
      const [file, ...names] = line.split(" ");
      return names.map((name) => `${file} ${name}`);
    });
  const known = new Set(named);
  assert.deepEqual(
    found.filter((one) => !known.has(one)),
    [],
    "move these into the bounds of a member (member/src/bounds.ts), or say why not",
  );
  const there = new Set(found);
  assert.deepEqual(
    named.filter((one) => !there.has(one)),
    [],
    "these are gone",
  );
});

type Numbers = Readonly<Record<string, number | undefined>>;

test("each field of a member's limits is below the product's in some of the first 200 seeds", () => {
  const product: Readonly<Record<string, object>> = {
    ...MEMBER_BOUNDS,
    watch: WATCH_LIMITS,
    slices: SLICE_LIMITS,
    answers: DEFAULT_ANSWER_LIMITS,
  };
  const left = new Set(
    Object.entries(product).flatMap(([part, fields]) =>
      Object.keys(fields).map((field) => `${part} ${field}`),
    ),
  );
  let smallBatches = 0;
  let singleKeys = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const options = optionsOf(seed);
    const { watchLimits, logMemory } = memoryLimitsOf(options);
    assert.equal(watchLimits === undefined, logMemory === undefined);
    if (batchOpsOf(options) < 100) smallBatches++;
    if (applyLimitsOf(options)?.stepKeys === 1) singleKeys++;
    const drawn: Readonly<Record<string, object | undefined>> = {
      ...boundsOf(options),
      watch: watchLimits,
      slices: sliceLimitsOf(options),
    };
    for (const one of left) {
      const [part, field] = one.split(" ") as [string, string];
      const value = (drawn[part] as Numbers | undefined)?.[field];
      if (value !== undefined && value < (product[part] as Numbers)[field]!) left.delete(one);
    }
  }
  assert.deepEqual([...left], FIELDS_NOT_DRAWN);
  assert.ok(smallBatches > 10 && singleKeys > 50, `${smallBatches} ${singleKeys}`);
});

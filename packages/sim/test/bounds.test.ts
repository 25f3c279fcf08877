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
/** Packages that a member is made of, and its front-ends. */
const SOURCES = "{{raft,wal,store,member,services,transport}/src,front/{src,node}}/**/*.ts";
/** A number of something: times are in docs/internals/timers.md. */
const CONSTANT = /^(?:export )?const ([A-Z][A-Z0-9_]*)(?:: number)? =\s*([^;]*);/gm;
const NUMERIC = /^[-\d._\s*+/()<]*(?:[A-Z][A-Z0-9_]*[-\d._\s*+/()<]*)*$/;
const WORDS =
  "MAX MIN MOST LEAST FEW SMALL LARGE SHORT STEP STEPS SLICE BATCH CHUNK WINDOW " +
  "BYTES CHARS KEYS RECORDS LOOKS LOOK_EVERY";
const BOUND = new RegExp(`(?:^|_)(?:${WORDS.replaceAll(" ", "|")})(?:_|$)`);

/** Constants that no run draws: why, and which, by their package. */
const NOT_DRAWN: Readonly<Record<string, readonly string[]>> = {
  "a size within a format, or of an encoding": [
    "front RECORD_BYTES MAX_RECORD_BYTES TARGET_BYTES STATUS_BYTES",
    "member WORD_BYTES",
    "raft CONTEXT_BYTES",
    "services MAX_FIELD_NUMBER",
    "store LIVE_RECORD_BYTES PREFIX_BYTES BUCKET_BYTES REVISION_BYTES TOMBSTONE_BYTES",
    "transport LENGTH_BYTES",
    "wal MAX_OVERHEAD_BYTES MAX_CRC_BYTES SECTOR_BYTES WORD_BYTES MARK_BYTES",
    "wal MAX_RECORD_HEAD_BYTES",
  ],
  "what is exact in a number, or in a request: beyond it all refuse alike (raft/test/check)": [
    "member MAX_MESSAGE_BYTES",
    "raft MAX_TERM MAX_INDEX MAX_TERM_LEAP",
    "services MAX_CHUNK_REQUESTS",
    "store MAX_SUB",
  ],
  "an estimate of memory or work that a bound counts with": [
    "front MESSAGE_BYTES",
    "member OBJECT_BYTES WATCH_BYTES GRPC_OVERHEAD_BYTES RESPONSE_BYTES REFERENCE_BYTES",
    "raft ENTRY_OVERHEAD_BYTES",
    "services CONTESTANT_BYTES",
    "store OVERHEAD_BYTES KEY_OVERHEAD_BYTES LEASE_COST_BYTES ROW_BYTES KEYS_PER_RECORD",
  ],
  "a share of the machine, and runs have none": [
    "member UNKNOWN_MEMORY_BYTES LEAST_MEMORY_BYTES MAX_BUDGETED_THOUSANDTHS MAX_STORE_FILES",
    "member MAX_CLIENT_CONNECTIONS MAX_HTTP_CONNECTIONS MAX_PEER_CONNECTIONS",
    "member LEAST_CONNECTIONS",
  ],
  "the start value of an option that runs draw": [
    "front RING_BYTES",
    "store MAX_PENDING_OPS STEP_KEYS DEFAULT_MAX_LEARNERS",
    "wal SEGMENT_BYTES",
  ],
  "the most that one member takes from another, which sends less: what is beyond is hostile": [
    "front MAX_HEAD_BYTES MAX_TEXTS MAX_RESPONSE_BYTES MAX_QUEUED_BYTES",
    "member MAX_BATCH_LEASES MAX_WAITING_PROPOSALS MAX_LISTED_MEMBERS",
    "store MAX_CHECKPOINT_LEASES MAX_FRAME_BYTES",
    "transport MAX_MESSAGE_ENTRIES MAX_HEAD_BYTES WINDOW_REFILL_BYTES",
  ],
  "what a client may ask for; refusals beyond it change nothing (store/test/malformed)": [
    "member MAX_MEMBER_URLS MAX_MEMBER_URL_CHARS MAX_WAITING_CHANGES",
    "services MAX_REQUEST_FIELDS",
    "store MAX_HASH_BYTES MAX_USERS MAX_ROLES MAX_USER_ROLES MAX_ROLE_PERMISSIONS",
    "store MAX_PERMISSIONS MAX_NAME_BYTES MAX_PERMISSION_KEY_BYTES MAX_TOKEN_ROLES",
    "store MAX_TOKEN_ROLE_LENGTH MAX_ID_DIGITS MAX_TXN_OPS_IN_ALL MAX_COPIED_BYTES",
    "store MAX_WRITE_ANSWER_BYTES MAX_COMPARED_RECORDS",
  ],
  "both sides give the same result; the bound says which is quicker (store/test/sliced-reads)": [
    "front COPY_BYTES",
    "member MAX_SHORT_BYTES",
    "services LARGE_RECORD_BYTES MIN_PIECES_BYTES FIRST_BLOCK_BYTES MAX_BLOCK_BYTES",
    "services MIN_OWN_PIECE_BYTES PIECE_BYTES SMALL_REQUEST_BYTES",
    "store COUNT_FROM_BYTES MAX_SHORT_OPS MAX_SHORT_KEYS SMALL_RANGE_BYTES",
    "transport COUNT_FROM_BYTES MAX_GATHERED_BYTES",
    "wal CHUNK_BYTES",
  ],
  "how much is kept in memory to be quicker, which no result shows": [
    "front SLAB_BYTES FIRST_TARGETS_BYTES MAX_REPEATED_BYTES",
    "services MAX_KEPT_REQUEST_BYTES",
    "store MAX_CACHED_INTERVALS MAX_COPIES MAX_KEPT_BYTES MAX_PARTS_AHEAD MAX_CACHED_BYTES",
    "store MAX_CACHED_RECORD_BYTES MAX_SPARE_ROWS MAX_SCRATCH_BYTES",
    "wal INITIAL_BYTES MAX_KEPT_BYTES",
  ],
  "a bound at most: `stepKeys`, which runs draw as 1, cuts before it": [
    "store MAX_LEASE_COVERAGES MAX_FORGOTTEN_KEYS MAX_KEPT_CHANGES KEPT_STEPS",
  ],
  "work on pure data between two looks at the time, with nothing that could change meanwhile": [
    "member CALLS_BETWEEN_LOOKS EVENTS_BETWEEN_LOOKS WATCHERS_BETWEEN_LOOKS WATCHES_BETWEEN_LOOKS",
    "member MAX_SLICE_STEPS",
    "store STEP_COMPARES LOOK_EVERY RECORDS_OF_ONE_KEY",
  ],
  "its own test draws it, with a model beside it (mvcc-tree, mvcc-deletions, intervals)": [
    "raft BLOCK_BYTES MAX_COPIED_BYTES",
    "store LEAF_KEYS FIRST_RUN_KEYS MAX_RUN_KEYS MERGE_STEPS MAX_LOOKUPS",
  ],
  "its own test meets it, and a run would take too long or does not come there": [
    "front MAX_PIECE_BYTES MAX_BATCHES_A_TURN WINDOW_BYTES TAKEN_STEP_BYTES MAX_IDENTITIES",
    "front MAX_CALLS MAX_MESSAGES MAX_TARGETS_BYTES MAX_AGAIN_CALLS MAX_UNREAD_SOCKETS",
    "front MAX_WAITING_SOCKETS MAX_LINES_A_SECOND",
    "member MAX_FLUSHES MAX_VOTERS_AT_START MAX_DAMAGED_STORES FIRST_ELECTION_LOOKS",
    "services MAX_LOGIN_ROUNDS MAX_WAITING_KEEP_ALIVES MAX_RECHECKED_LEASES FIRST_CHUNK_KEYS",
    "services MESSAGE_BYTES MAX_CLIENT_SNAPSHOTS MAX_SNAPSHOTS_OF_ONE_CLIENT",
    "services MAX_WAITING_SNAPSHOTS MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT",
    "services MIN_SNAPSHOT_PROGRESS_BYTES MAX_CHECKS_WITHOUT_LEADER MAX_RECORDS_AT_ONCE",
    "services MAX_STEP_BYTES",
    "store MAX_WAITING_HASHES BATCH_BYTES",
    "wal REWRITE_BYTES STEP_BYTES WINDOW_BYTES",
  ],
  "no run has what it bounds: files of etcd and of LevelDB, discovery, texts, logs, metrics": [
    "member MAX_SOCKET_PATH_BYTES MAX_ADDRESS_CHARS MAX_COUNTED_FAILURES MAX_SRV_RECORDS",
    "member MAX_NAME_CHARS MAX_CLUSTER_SIZE MAX_RECORDS MAX_RECORD_CHARS SHOWN_CHARS",
    "member MAX_SHOWN_CHARS MAX_METHODS_AND_CODES",
    "services MAX_CLIENT_VERSIONS MAX_LINES_A_SECOND",
    "store SECTOR_BYTES READ_BYTES CHECKSUM_BYTES SLICE_BYTES LEAST_COUNTED_BYTES",
    "store RECORD_OVERHEAD_BYTES BLOCK_BYTES HEAD_BYTES MARK_BYTES MAX_OPEN_TABLES",
    "store MAX_ATTEMPTS FEW_BYTES WINDOW_BYTES MAX_BLOCK_BYTES FOOT_BYTES TRAILER_BYTES",
    "store MAX_INDEX_BYTES",
    "transport MAX_KEYS",
  ],
  "tokens and passwords of many users (server/test/auth-jwt, authority)": [
    "member MAX_TOKEN_BYTES MAX_CACHED_TOKENS MAX_CACHED_TOKEN_BYTES",
    "member MAX_RUNNING_VERIFICATIONS MAX_NAME_LENGTH MAX_VERIFICATION_KEYS",
    "member MAX_PASSWORD_BYTES MAX_RUNNING_HASHES MAX_WAITING_HASHES",
    "member MAX_WAITING_HASHES_OF_ONE_CLIENT MAX_TOKENS MAX_TOKENS_OF_ONE_USER MAX_SWEPT",
    "member MAX_SHOWN_PASSWORDS KEY_BYTES",
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
      .map(([, name]) => `${file.split("/")[0]} ${name}`),
  );
  const named = Object.values(NOT_DRAWN)
    .flat()
    .flatMap((line) => {
      const [owner, ...names] = line.split(" ");
      return names.map((name) => `${owner} ${name}`);
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

/** quorateutl dump-db: the contents of a store, in the format of etcd-dump-db. */
import { BoltDamageError, scanLeaves } from "@quorate/bolt";
import {
  badArguments,
  Exit,
  ExitCode,
  type Invocation,
  parseBigInt64,
  parseBool,
  toSafeNumber,
} from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import {
  authpb,
  crc32c,
  fromUtf8,
  KeyValue,
  leasepb,
  quoteBytes,
  readU64BE,
  toHex,
  toLatin1,
  WireError,
} from "@quorate/proto";
import { reportingErrors } from "../files/data-dir.ts";
import { type BucketRecord, type BucketSource, boltPath, openSource } from "./bucket-source.ts";
import { LineOutput } from "./output.ts";
import { protoText } from "./proto-text.ts";
import { wireFields } from "./wire.ts";

/**
 * Runs a task on the store that the first argument names. Throws Exit: for a damaged file with its
 * path, the offset and the next step.
 */
function withSource(
  invocation: Invocation,
  argumentCount: number,
  task: (source: BucketSource, out: LineOutput) => Promise<void>,
): Promise<void> {
  return reportingErrors(async () => {
    checkArguments(invocation, argumentCount);
    await naming(async () => {
      const source = await openSource(
        invocation.args[0] ?? "",
        invocation.flags.durationMs("timeout"),
      );
      const out = new LineOutput(invocation.io);
      try {
        await task(source, out);
      } finally {
        out.flush();
        await source.close();
      }
    });
  });
}

function checkArguments({ args }: Invocation, count: number): void {
  if (args.length === count) return;
  throw badArguments(
    `Must provide ${count} argument${count === 1 ? "" : "s"} (got [${args.join(" ")}])`,
  );
}

/** Converts damage to an Exit that names the command to run next. */
async function naming(task: () => Promise<void>): Promise<void> {
  try {
    await task();
  } catch (error) {
    if (!(error instanceof BoltDamageError)) throw error;
    throw new Exit(
      ExitCode.error,
      `${error.message}; what can still be read: quorateutl dump-db scan-keys ${error.path} 0; to restore, use another snapshot`,
    );
  }
}

/** The names of all buckets. */
export function listBuckets(invocation: Invocation): Promise<void> {
  return withSource(invocation, 1, async ({ bucketNames }, out) => {
    for (const name of bucketNames) out.write(`${name}\n`);
  });
}

/** The records of one bucket, the last first. */
export function iterateBucket(invocation: Invocation): Promise<void> {
  return withSource(invocation, 2, async (source, out) => {
    const [, bucket = ""] = invocation.args;
    if (!source.bucketNames.includes(bucket)) {
      throw new Exit(
        ExitCode.error,
        `got nil bucket for ${bucket}; the buckets are: ${source.bucketNames.join(", ")}`,
      );
    }
    const limit = invocation.flags.int("limit");
    const text = textsOf(bucket, decodeOf(invocation));
    let count = 0;
    for await (const record of reversedRecords(source, bucket)) {
      out.write(await text(record));
      if (++count === limit) break;
    }
  });
}

/** The value of --decode. Throws Exit. */
function decodeOf({ flags }: Invocation): boolean | "k8s" {
  const text = flags.string("decode");
  if (text === "k8s") return text;
  try {
    return parseBool(text);
  } catch (error) {
    throw badArguments(`--decode is k8s, true or false: ${(error as Error).message}`);
  }
}

/** What prints the records of a bucket, with the line ends. */
function textsOf(
  bucket: string,
  decode: boolean | "k8s",
): (record: BucketRecord) => string | Promise<string> {
  if (decode === false) return (record) => `${rawText(record)}\n`;
  const decoded = (record: BucketRecord): string => `${decodedText(bucket, record)}\n`;
  if (decode === true || bucket !== "key") return decoded;
  return (record) =>
    kubernetesText(record, "").catch((error: unknown) => {
      if (!(error instanceof RangeError || error instanceof WireError)) throw error;
      return `---\n# ${decoded(record)}`;
    });
}

/** A record of keys with its value as YAML. Rejects with RangeError or WireError as keyText. */
async function kubernetesText(record: BucketRecord, place: string): Promise<string> {
  const { kubernetesDocument } = await import("./kubernetes.ts");
  const { key, createRevision, modRevision, version } = KeyValue.decode(record[1]);
  const revisions = `created ${createRevision} | mod ${modRevision} | ver ${version}`;
  const heading = `${place}${revisionText(record)}, key ${quoteBytes(key)} | ${revisions}`;
  return `---\n${await kubernetesDocument(record[1], heading)}`;
}

/** Records of the bucket meta that are not data. */
const NOT_HASHED = new Set([
  "consistent_index",
  "term",
  "storageVersion",
  "quorate_storage_version",
]);

/**
 * The CRC-32C of all buckets' names, keys and values, except the records in which members differ.
 */
export function hashBuckets(invocation: Invocation): Promise<void> {
  return withSource(invocation, 1, async (source, out) => {
    let hash = 0;
    for (const bucket of source.bucketNames) {
      hash = crc32c(hash, fromUtf8(bucket));
      for await (const slice of source.records(bucket)) {
        for (const [key, value] of slice) {
          if (bucket === "meta" && NOT_HASHED.has(toLatin1(key))) continue;
          hash = crc32c(crc32c(hash, key), value);
        }
      }
    }
    out.write(`db path: ${source.path}\nHash: ${hash}\n`);
  });
}

/**
 * All records of keys from a revision on; in bbolt files also those on freed pages, each with its
 * page.
 */
export function scanKeys(invocation: Invocation): Promise<void> {
  return reportingErrors(async () => {
    checkArguments(invocation, 2);
    const [path = "", revision = ""] = invocation.args;
    const file = boltPath(path);
    const from = startRevision(revision);
    const decode = decodeOf(invocation);
    if (file !== undefined) {
      await naming(() => scanFile(invocation, file, from, decode === "k8s"));
      return;
    }
    const text = textsOf("key", decode);
    await withSource(invocation, 2, async (source, out) => {
      for await (const slice of source.records("key")) {
        for (const record of slice)
          if (revisionOf(record[0]).main >= from) out.write(await text(record));
      }
    });
  });
}

function startRevision(text: string): number {
  try {
    return toSafeNumber(parseBigInt64(text, 10));
  } catch (error) {
    throw badArguments((error as Error).message);
  }
}

async function scanFile(
  { io }: Invocation,
  path: string,
  from: number,
  isKubernetes: boolean,
): Promise<void> {
  const out = new LineOutput(io);
  try {
    for (const scanned of scanLeaves(nodeDisk, path)) {
      const { page } = scanned;
      if ("problem" in scanned) {
        io.stderr(`Reading page ${page} failed: ${scanned.problem}. Continuing...\n`);
        continue;
      }
      for (const { index, key, value } of scanned.records) {
        // The page with the names of the buckets.
        if (BUCKET_NAMES.has(toLatin1(key))) break;
        try {
          if (revisionOf(key).main < from) continue;
          const place = `pageID=${page}, index=${index}/${scanned.count - 1}, `;
          const record: BucketRecord = [key, value];
          out.write(
            isKubernetes ? await kubernetesText(record, place) : `${place}${keyText(record)}\n`,
          );
        } catch (error) {
          if (!(error instanceof RangeError || error instanceof WireError)) throw error;
          io.stderr(
            `Decoding revision failed, pageID: ${page}, index: ${index}, key: ${toHex(key)}, error: ${error.message}\n`,
          );
        }
      }
    }
  } finally {
    out.flush();
  }
}

const BUCKET_NAMES = new Set([
  "alarm",
  "auth",
  "authRoles",
  "authUsers",
  "cluster",
  "key",
  "lease",
  "members",
  "members_removed",
  "meta",
]);

/** Most bytes of records in memory, except for a single larger record. */
const WINDOW_BYTES = 32 * 1024 * 1024;

/**
 * Yields the records of a bucket in reverse, as etcd-dump-db prints them. Stores are read forwards
 * only: a first pass notes the first key of each window of records, then the windows are read in
 * reverse.
 *
 * @param windowBytes for tests
 */
export async function* reversedRecords(
  source: BucketSource,
  bucket: string,
  windowBytes = WINDOW_BYTES,
): AsyncGenerator<BucketRecord> {
  for (const { from, count } of (await windowsOf(source, bucket, windowBytes)).reverse()) {
    const window: BucketRecord[] = [];
    for await (const slice of source.records(bucket, from)) {
      window.push(...slice.slice(0, count - window.length));
      if (window.length === count) break;
    }
    yield* window.reverse();
  }
}

interface Window {
  readonly from: Uint8Array;
  readonly count: number;
}

async function windowsOf(
  source: BucketSource,
  bucket: string,
  windowBytes: number,
): Promise<Window[]> {
  const windows: Window[] = [];
  let from: Uint8Array | undefined;
  let count = 0;
  let sizeBytes = 0;
  for await (const slice of source.records(bucket)) {
    for (const [key, value] of slice) {
      const recordBytes = key.length + value.length;
      if (from !== undefined && sizeBytes + recordBytes > windowBytes) {
        windows.push({ from, count });
        from = undefined;
      }
      if (from === undefined) {
        from = key.slice();
        count = 0;
        sizeBytes = 0;
      }
      count++;
      sizeBytes += recordBytes;
    }
  }
  if (from !== undefined) windows.push({ from, count });
  return windows;
}

type Decoder = (record: BucketRecord) => string;

const REVISION_BYTES = 17;

/**
 * Records of the backend as etcd-dump-db prints them: raw in quotes, or decoded by bucket.
 *
 * Key and value in quotes.
 */
function rawText([key, value]: BucketRecord): string {
  return `key=${quoteBytes(key)}, value=${quoteBytes(value)}`;
}

/**
 * A decoded record of a known bucket; raw for other buckets and for records that do not decode.
 */
export function decodedText(bucket: string, record: BucketRecord): string {
  const decoder = decoders[bucket];
  if (decoder === undefined) return rawText(record);
  try {
    return decoder(record);
  } catch (error) {
    if (error instanceof RangeError || error instanceof WireError)
      return `${rawText(record)} (cannot be decoded: ${error.message})`;
    throw error;
  }
}

/**
 * A revision key and its record. Throws RangeError or WireError if they are malformed.
 */
function keyText(record: BucketRecord): string {
  const [, value] = record;
  const revision = revisionText(record);
  const kv = KeyValue.decode(value);
  const revisions = `created ${kv.createRevision} | mod ${kv.modRevision} | ver ${kv.version}`;
  const shown = `key ${quoteBytes(kv.key)} | val ${quoteBytes(kv.value)} | ${revisions}`;
  return `${revision}, value=[${shown}]`;
}

function revisionText([key]: BucketRecord): string {
  const { main, sub, isTombstone } = revisionOf(key);
  return `rev={Revision:{Main:${main} Sub:${sub}} tombstone:${isTombstone}}`;
}

/** Decodes the 17 or 18 bytes of a revision key. Throws RangeError if they are malformed. */
function revisionOf(key: Uint8Array): { main: number; sub: number; isTombstone: boolean } {
  const isTombstone = key.length === REVISION_BYTES + 1 && key[REVISION_BYTES] === 0x74;
  if ((key.length !== REVISION_BYTES && !isTombstone) || key[8] !== 0x5f)
    throw new RangeError("the key is no revision");
  return { main: readU64BE(key, 0), sub: readU64BE(key, 9), isTombstone };
}

const decoders: Readonly<Record<string, Decoder>> = {
  key: keyText,
  lease: ([key, value]) => {
    if (key.length !== 8) throw new RangeError("lease ID must be 8-byte");
    const { TTL, RemainingTTL } = leasepb.Lease.decode(value);
    return `lease ID=${Buffer.from(key).toString("hex")}, TTL=${TTL}s, remaining TTL=${RemainingTTL}s`;
  },
  auth: ([key, value]) => {
    const isRevision = Buffer.from(key).toString("latin1") === "authRevision" && value.length === 8;
    return `key=${quoteBytes(key)}, value=${isRevision ? readU64BE(value) : `[${[...value].join(" ")}]`}`;
  },
  authRoles: ([, value]) => {
    const { name } = authpb.Role.decode(value);
    const permissions = [...wireFields(value)].filter(({ number }) => number === 2);
    const texts = permissions.map((one) => protoText("authpb.Permission", one.value as Uint8Array));
    return `role=${quoteBytes(name)}, keyPermission=[${texts.join(" ")}]`;
  },
  authUsers: ([, value]) => {
    const { name, roles } = authpb.User.decode(value);
    const options = [...wireFields(value)].findLast(({ number }) => number === 4)?.value as
      | Uint8Array
      | undefined;
    const shown = options === undefined ? "<nil>" : protoText("authpb.UserAddOptions", options);
    return `user=${quoteBytes(name)}, roles=[${roles.map((role) => quoteBytes(Buffer.from(role))).join(" ")}], option=${shown}`;
  },
  meta: (record) => {
    const [key, value] = record;
    const name = Buffer.from(key).toString("latin1");
    if ((name === "consistent_index" || name === "term") && value.length === 8)
      return `key=${quoteBytes(key)}, value=${readU64BE(value)}`;
    if (name === "scheduledCompactRev" || name === "finishedCompactRev") {
      const { main, sub } = revisionOf(value);
      return `key=${quoteBytes(key)}, value={${main} ${sub}}`;
    }
    return rawText(record);
  },
};

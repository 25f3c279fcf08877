/** quorateutl dump-db: the contents of a store, in the format of etcd-dump-db. */
import { BoltDamageError, scanLeaves } from "@quorate/bolt";
import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode, parseBigInt64, toSafeNumber } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import { crc32c, fromUtf8, toHex, toLatin1, WireError } from "@quorate/proto";
import { reportingErrors } from "../files/data-dir.ts";
import { type BucketSource, boltPath, openSource } from "./bucket-source.ts";
import { LineOutput } from "./output.ts";
import { decodedText, keyText, rawText, revisionOf } from "./record-text.ts";
import { reversedRecords } from "./reversed.ts";

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
      const source = await openSource(invocation.args[0], invocation.flags.durationMs("timeout"));
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
  throw new Exit(
    ExitCode.badArguments,
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
    const bucket = invocation.args[1];
    if (!source.bucketNames.includes(bucket)) {
      throw new Exit(
        ExitCode.error,
        `got nil bucket for ${bucket}; the buckets are: ${source.bucketNames.join(", ")}`,
      );
    }
    const limit = invocation.flags.int("limit");
    const isDecoded = invocation.flags.bool("decode");
    let count = 0;
    for await (const record of reversedRecords(source, bucket)) {
      out.write(`${isDecoded ? decodedText(bucket, record) : rawText(record)}\n`);
      if (++count === limit) break;
    }
  });
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
    const file = boltPath(invocation.args[0]);
    const from = startRevision(invocation.args[1]);
    if (file !== undefined) {
      await naming(async () => scanFile(invocation, file, from));
      return;
    }
    await withSource(invocation, 2, async (source, out) => {
      for await (const slice of source.records("key")) {
        for (const record of slice)
          if (revisionOf(record[0]).main >= from) out.write(`${decodedText("key", record)}\n`);
      }
    });
  });
}

function startRevision(text: string): number {
  try {
    return toSafeNumber(parseBigInt64(text, 10));
  } catch (error) {
    throw new Exit(ExitCode.badArguments, (error as Error).message);
  }
}

function scanFile({ io }: Invocation, path: string, from: number): void {
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
          if (revisionOf(key).main >= from)
            out.write(
              `pageID=${page}, index=${index}/${scanned.count - 1}, ${keyText([key, value])}\n`,
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

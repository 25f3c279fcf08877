/** quorateutl dump-logs: the entries of a member's log, in the format of etcd-dump-logs. */

import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import { defined, idToHex } from "@quorate/proto";
import { parseSnapshotName } from "@quorate/wal";
import { directoryArgument, logDirectory, reportingErrors } from "../files/data-dir.ts";
import { type EntryType, entryTypes, shownEntry } from "./entry-types.ts";
import { type LogContent, logIds, newestMark, readLog } from "./log-entries.ts";
import { LineOutput } from "./output.ts";
import { rawLines } from "./raw-logs.ts";
import { StreamDecoder } from "./stream-decoder.ts";

const DEFAULT_TYPES = "Normal,ConfigChange";

/** Throws Exit. */
export function runDumpLogs(invocation: Invocation): Promise<void> {
  return reportingErrors(async () => {
    const { flags, io } = invocation;
    const given = flags.string("wal-dir");
    const dir =
      given === ""
        ? logDirectory(directoryArgument(invocation.args, "dump-logs"))
        : directoryArgument([given], "--wal-dir");
    const out = new LineOutput(io);
    try {
      if (flags.bool("raw")) dumpRaw(invocation, dir, out);
      else await dumpEntries(invocation, dir, out);
    } finally {
      out.flush();
    }
  });
}

/** The value of --max-value-bytes. Throws Exit. */
function maxValueBytes({ flags }: Invocation): number {
  const maxBytes = flags.int("max-value-bytes");
  if (maxBytes < 0)
    throw new Exit(
      ExitCode.badArguments,
      `--max-value-bytes must not be negative, and is ${maxBytes}`,
    );
  return maxBytes === 0 ? Number.POSITIVE_INFINITY : maxBytes;
}

function dumpRaw(invocation: Invocation, dir: string, out: LineOutput): void {
  const { flags } = invocation;
  const maxBytes = maxValueBytes(invocation);
  if (flags.string("entry-type") !== DEFAULT_TYPES || flags.string("stream-decoder") !== "") {
    throw new Exit(
      ExitCode.badArguments,
      "--entry-type and --stream-decoder are not supported with --raw",
    );
  }
  for (const line of rawLines(nodeDisk, dir, flags.int("start-index"), maxBytes)) out.write(line);
}

async function dumpEntries(invocation: Invocation, dir: string, out: LineOutput): Promise<void> {
  const { flags, io } = invocation;
  const typeText = flags.string("entry-type");
  const kinds = kindsOf(typeText, (warning) => io.stderr(warning));
  const { metadata, state, entries, damage } = contentFrom(invocation, dir, out);
  const { node, cluster } = logIds(metadata, idToHex);
  out.write(`WAL metadata:\nnodeID=${node} clusterID=${cluster} `);
  out.write(`term=${state.term} commitIndex=${state.commit} vote=${idToHex(state.vote)}\n`);
  const endIndex = flags.int("end-index");
  const maxBytes = maxValueBytes(invocation);
  const wanted = endIndex === 0 ? entries : entries.filter(({ index }) => index < endIndex);
  out.write(`WAL entries: ${wanted.length}\n`);
  if (wanted.length > 0)
    out.write(`lastIndex=${defined(wanted.at(-1), "an element of wanted").index}\n`);
  const command = flags.string("stream-decoder");
  out.write(
    `term\t     index\ttype\tdata${command === "" ? "" : "\tdecoder_status\tdecoded_data"}\n`,
  );
  const decoder = command === "" ? undefined : new StreamDecoder(command);
  let count = 0;
  try {
    for (const entry of wanted) {
      const shown = shownEntry(entry, kinds, maxBytes);
      if (shown === undefined) continue;
      count++;
      out.write(`${String(entry.term).padStart(4)}\t${String(entry.index).padStart(10)}\t${shown}`);
      out.write(decoder === undefined ? "\n" : `\t${await decoder.decode(entry.data)}\n`);
    }
    const said = (await decoder?.close()) ?? "";
    if (said !== "") io.stderr(`decoder stderr: ${said}`);
  } finally {
    decoder?.kill();
  }
  out.write(`\nEntry types (${typeText}) count is : ${count}\n`);
  // The readable entries were printed above.
  if (damage !== undefined) throw damage;
}

/** The types of --entry-type; warns about unknown ones. */
function kindsOf(text: string, warn: (warning: string) => void): EntryType[] {
  const kinds: EntryType[] = [];
  for (const name of text === "" ? [] : text.split(",")) {
    const kind = entryTypes.find((one) => one === name);
    if (kind !== undefined) kinds.push(kind);
    else
      warn(
        `[${name}] is not a valid entry-type, ignored.\nPlease set entry-type to one or more of the following:\n${entryTypes.join(", ")}\n`,
      );
  }
  return kinds;
}

/** Reads from the start that the flags select, and prints that start. */
function contentFrom({ flags }: Invocation, dir: string, out: LineOutput): LogContent {
  if (flags.isSet("start-index") && flags.isSet("start-snap")) {
    throw new Exit(
      ExitCode.badArguments,
      "--start-index and --start-snap cannot be set at the same time, choose one",
    );
  }
  if (flags.isSet("start-index")) {
    const startIndex = flags.int("start-index");
    if (startIndex < 0)
      throw new Exit(
        ExitCode.badArguments,
        `--start-index must not be negative, and is ${startIndex}`,
      );
    out.write(`Start dumping log entries from index ${startIndex}.\n`);
    return readLog(nodeDisk, dir, Math.max(0, startIndex - 1));
  }
  const from = flags.isSet("start-snap")
    ? namedSnapshot(flags.string("start-snap"))
    : newestMark(nodeDisk, dir);
  const isEmpty = from === undefined || (from.index === 0 && from.term === 0);
  out.write(isEmpty ? "Snapshot:\nempty\n" : `Snapshot:\nterm=${from.term} index=${from.index}\n`);
  out.write("Start dumping log entries from snapshot.\n");
  return readLog(nodeDisk, dir, from?.index ?? 0);
}

function namedSnapshot(name: string): { term: number; index: number } {
  const found = parseSnapshotName(name.endsWith(".snap") ? name : `${name}.snap`);
  if (found === undefined) {
    throw new Exit(
      ExitCode.badArguments,
      `--start-snap is the name of a file in member/snap, such as 0000000000000002-0000000000002711.snap, and is ${JSON.stringify(name)}`,
    );
  }
  return found;
}

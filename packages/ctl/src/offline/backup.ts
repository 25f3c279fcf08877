import {
  BackupError,
  type Chain,
  chainFor,
  chainsOf,
  fetchBackup,
  ObjectStoreError,
  readCatalog,
  rebuild,
  verifyChain,
} from "@quorate/backup";
import { BoltDamageError } from "@quorate/bolt";
import type { Command, Invocation } from "@quorate/cli";
import { badArguments, drawTable, goJson, humanBytes, Progress, textFlag } from "@quorate/cli";
import { escapeControls } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { raftpb } from "@quorate/proto";
import { EtcdFileError, type NewCluster, StoreDamageError } from "@quorate/store";
import { directoryArgument, plainPath, reportingErrors } from "../files/data-dir.ts";
import { ABOUT_CREDENTIALS, objectStoreFlags, objectStoreOf } from "../files/object-store.ts";
import { newMemberFlags, newMemberOf } from "./new-member.ts";
import { checkForm } from "./report.ts";
import { bumpRevisionOf, restoreFlags, restoreMember } from "./restore.ts";

const isoTime = (timeMs: number): string => new Date(timeMs).toISOString().replace(/\.\d+Z$/, "Z");

/**
 * Adds the next step to an error about a damaged base snapshot: another one may reach the same
 * revisions.
 */
function withNextStep(message: string): string {
  const base = /(?:^|: )([^:]*\/base-[0-9a-f]{16}-[0-9TZ]+\.db): /.exec(message)?.[1];
  if (base === undefined) return message;
  const dir = base.slice(0, base.lastIndexOf("/"));
  const list = `"quorateutl backup list ${dir}"`;
  return `${message}. What to do next: "mv ${base} ${base}.damaged"; then ${list} shows which revisions the others reach`;
}

/** Runs a command on a backup; operating errors become an Exit with their text. */
function onBackup(task: () => Promise<void>): Promise<void> {
  return reportingErrors(task, (error) => {
    if (
      error instanceof BackupError ||
      error instanceof ObjectStoreError ||
      error instanceof BoltDamageError ||
      error instanceof EtcdFileError
    )
      return withNextStep(error.message);
    if (error instanceof StoreDamageError)
      return `${error.place}: ${error.problem}: the backup is damaged`;
  });
}

const listCommand: Command = {
  use: "list <directory>",
  short: "Lists the revisions that a backup can rebuild",
  long: `Lists what can be rebuilt from a backup: one line per base snapshot, with its revision and time, the
last revision and time that it reaches, and the size of its files.`,
  run: (invocation) => {
    checkForm(invocation);
    const dir = directoryArgument(invocation.args, "backup list");
    return onBackup(async () => {
      const rows = chainsOf(readCatalog(nodeDisk, dir)).map(
        ({ base, segments, last, lastTimeMs }) => ({
          revision: base.revision,
          time: isoTime(base.timeMs),
          lastRevision: last,
          lastTime: isoTime(lastTimeMs),
          sizeBytes: base.sizeBytes + segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        }),
      );
      printRows(invocation, rows);
    });
  },
};

function printRows(
  { flags, io }: Invocation,
  rows: readonly Readonly<Record<string, string | number>>[],
): void {
  const form = flags.string("write-out");
  const shown = rows.map(({ sizeBytes, ...others }) => [
    ...Object.values(others).map(String),
    humanBytes(sizeBytes as number),
  ]);
  if (form === "json") io.stdout(`${goJson(rows.map((row) => ({ ...row })))}\n`);
  else if (form === "table")
    io.stdout(
      drawTable({
        header: ["base revision", "time", "last revision", "last time", "size"],
        rows: shown,
      }),
    );
  else if (form === "fields") {
    for (const row of rows)
      io.stdout(
        `${Object.entries(row)
          .map(([name, value]) => `"${name}" : ${value}\n`)
          .join("")}\n`,
      );
  } else for (const row of shown) io.stdout(`${row.join(", ")}\n`);
}

/** A cluster of one member, for stores that no member starts on. */
const SCRATCH_CLUSTER: NewCluster = {
  members: [
    {
      id: 1n,
      name: "verify",
      peerUrls: ["http://localhost:2380"],
      clientUrls: [],
      isLearner: false,
    },
  ],
  position: { index: 1, term: 1, confState: raftpb.ConfState.create({ voters: [1n] }) },
};

const verifyCommand: Command = {
  use: "verify <directory>",
  short: "Verifies a backup: rebuilds it and compares the recorded hashes",
  long: `Verifies a backup: rebuilds it in a temporary directory beside it and compares the recorded hashes.

Every file is read and each record checked against those before it. It needs about as much free
space as the store.`,
  run: (invocation) => {
    const { args, io } = invocation;
    const dir = directoryArgument(args, "backup verify");
    return onBackup(async () => {
      const chains = chainsOf(readCatalog(nodeDisk, dir));
      if (chains.length === 0) throw new BackupError("OutOfRange", dir, "it has no base snapshot");
      for (const [i, chain] of chains.entries()) {
        const next = chains[i + 1]?.base.revision;
        const upTo = next !== undefined && next <= chain.last ? next : chain.last;
        const progress = new Progress(io, "verifying ");
        const scratch = `${dir}/verify.tmp`;
        nodeDisk.remove(scratch);
        try {
          const deps = { disk: nodeDisk, keyspaces: levelKeyspaces };
          const { from, to, hashes } = await verifyChain(
            deps,
            chain,
            upTo,
            SCRATCH_CLUSTER,
            scratch,
            (bytes, total) => progress.update(bytes, total),
          );
          progress.end();
          io.stdout(`revisions ${from} to ${to}: good; ${hashes} hashes compared\n`);
        } finally {
          progress.end();
        }
        if (next !== undefined && next > chain.last)
          io.stdout(`GAP: nothing between ${chain.last} and ${next}\n`);
      }
    });
  },
};

const fetchCommand: Command = {
  use: "fetch s3://<bucket>/<prefix> <directory>",
  short: "Makes the directory of a backup from its mirror in an object store",
  long: `Makes the directory of a backup from its mirror in an object store, which "backup run --mirror" keeps.

The directory is new, or has a part of the same backup, which is not fetched again. Then list,
verify and restore work on it, and "backup run" goes on with it.

${ABOUT_CREDENTIALS}`,
  flags: {
    at: textFlag("fetch only the base snapshot that this revision or time needs (default all)"),
    ...objectStoreFlags,
  },
  run: (invocation) => {
    const { args, flags, io } = invocation;
    const [place, directory] = args;
    if (place === undefined || directory === undefined || args.length > 2)
      throw badArguments("backup fetch needs two arguments: s3://bucket/prefix and a directory");
    const at = flags.string("at");
    return onBackup(async () => {
      const until = at === "" ? undefined : parsePoint(at);
      const store = await objectStoreOf(invocation, place);
      const progress = new Progress(io, "fetching ");
      try {
        const dir = plainPath(directory);
        const { files, sizeBytes } = await fetchBackup(nodeDisk, store, dir, {
          ...(until === undefined ? {} : { until }),
          progress: (bytes, total) => progress.update(bytes, total),
        });
        progress.end();
        io.stdout(`${dir}: ${files} files fetched, ${humanBytes(sizeBytes)}\n`);
      } finally {
        progress.end();
        await store.close();
      }
    });
  },
};

/** The value of --at: a revision or a time. Throws Exit. */
function parsePoint(at: string): { revision: number } | { timeMs: number } {
  if (/^\d+$/.test(at)) return { revision: Number(at) };
  const timeMs = Date.parse(at);
  if (Number.isNaN(timeMs) || !/^\d{4}-\d\d-\d\d/.test(at)) {
    throw badArguments(
      `--at must be a revision or a time such as 2026-01-31T12:00:00Z, and is ${JSON.stringify(at)}`,
    );
  }
  return { timeMs };
}

/** The chain and the point of --at. Throws BackupError, Exit. */
function pointOf(
  dir: string,
  at: string,
  warn: (text: string) => void,
): { chain: Chain; point: { revision: number } | { timeMs: number } } {
  const catalog = readCatalog(nodeDisk, dir);
  const chains = chainsOf(catalog);
  const [oldest] = chains;
  const newest = chains.at(-1);
  if (oldest === undefined || newest === undefined)
    throw new BackupError("OutOfRange", dir, "it has no base snapshot");
  if (at === "") return { chain: newest, point: { revision: newest.last } };
  const point = parsePoint(at);
  if ("revision" in point) return { chain: chainFor(catalog, point.revision), point };
  const { timeMs } = point;
  const chain = chains.filter(({ base }) => base.timeMs <= timeMs).at(-1);
  if (chain === undefined)
    throw new BackupError(
      "OutOfRange",
      dir,
      `it begins at ${isoTime(oldest.base.timeMs)}, after ${isoTime(timeMs)}`,
    );
  if (timeMs > chain.lastTimeMs)
    warn(
      `Warning: the backup ends at ${isoTime(chain.lastTimeMs)} with revision ${chain.last}: ` +
        `changes between that and ${isoTime(timeMs)} are not in it\n`,
    );
  return { chain, point };
}

const restoreCommand: Command = {
  use: "restore <directory> --data-dir {output dir} [options]",
  short: "Makes a member's data directory from the state at a revision or a time",
  long: `Makes a member's data directory with the cluster's state at a revision or a time, and every revision
since the base snapshot.

Run it once for each member of the new cluster, with the same --at, --initial-cluster and
--initial-cluster-token; then start the members with those flags. Times are when changes were
received: a time between two runs (--once) is refused, because it cannot be told what was made before
it. --bump-revision with --mark-compacted makes watching clients notice that history went back.`,
  flags: {
    at: textFlag("a revision, or a time such as 2026-01-31T12:00:00Z (default the newest)"),
    ...newMemberFlags,
    ...restoreFlags,
  },
  run: async (invocation) => {
    const { args, flags, io } = invocation;
    const dir = directoryArgument(args, "backup restore");
    const bumpRevision = bumpRevisionOf(flags);
    const target = await newMemberOf(invocation);
    await onBackup(async () => {
      const { chain, point } = pointOf(dir, flags.string("at"), io.stderr);
      await restoreMember(io, dir, target, (storeDir, onProgress) =>
        rebuild({ disk: nodeDisk, keyspaces: levelKeyspaces }, chain, point, {
          storeDir,
          cluster: target.cluster,
          bumpRevision,
          disablesAuth: flags.bool("disable-auth"),
          onProgress,
          onUsersWithoutPassword: (users) => {
            if (users.length > 0) io.stderr(withoutPassword(users));
          },
        }),
      );
    });
  },
};

/** Users whose passwords no backup has. */
function withoutPassword(users: readonly string[]): string {
  const named = users.slice(0, MAX_NAMED_USERS).map(escapeControls).join(", ");
  const more = users.length > MAX_NAMED_USERS ? ` and ${users.length - MAX_NAMED_USERS} more` : "";
  return (
    `Warning: these users came after the base snapshot, so their passwords are unknown: ${named}${more}; ` +
    "set them with quoratectl user passwd\n"
  );
}

const MAX_NAMED_USERS = 20;

export const backupFilesCommand: Command = {
  use: "backup <subcommand>",
  short: "Commands about the files of a continuous backup",
  commands: [fetchCommand, listCommand, restoreCommand, verifyCommand],
};

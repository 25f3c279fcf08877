/**
 * quorateutl adopt and release: a stopped member goes from etcd to Quorate, or back, under its own
 * id. Not in etcdutl.
 */
import {
  adoptMember,
  type EtcdMemberDeps,
  EtcdMemberError,
  type Exchange,
  exchange,
  finishExchange,
  type MemberFiles,
  releaseMember,
  type TakenMember,
} from "@quorate/backup";
import { BoltDamageError } from "@quorate/bolt";
import type { Command, Flags, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode, Progress, textFlag } from "@quorate/cli";
import { parentOf } from "@quorate/host";
import { isLocked, levelKeyspaces, nodeClock, nodeDisk } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { EtcdFileError } from "@quorate/store";
import { directoryArgument, plainPath, reportingErrors } from "../files/data-dir.ts";

/** One of the two ways. */
interface Way {
  readonly command: "adopt" | "release";
  /** Ends the names of the old member's directories, and of a new data directory. */
  readonly from: string;
  readonly to: string;
  readonly starts: string;
  take(source: MemberFiles, target: MemberFiles, deps: EtcdMemberDeps): Promise<TakenMember>;
}

const flagsOf = (from: string, to: string): Flags => ({
  "data-dir": textFlag(`data directory to make (default that of ${from} with the ending .${to})`),
  "wal-dir": textFlag("where the log is, if it is outside of the data directory"),
  "new-wal-dir": textFlag("directory of the log to make (default inside the data directory)"),
  "in-place": boolFlag(
    `put the new files in the place of the old ones, which stay beside them with the ending .${from}`,
  ),
});

/** What is read, what is made, and what is renamed when it is complete. */
interface Plan {
  readonly source: MemberFiles;
  readonly made: MemberFiles;
  readonly dataDir: string;
  /** Where nothing has to go aside: what is made, and its place. */
  readonly renames: readonly (readonly [made: string, place: string])[];
  readonly exchanges: readonly Exchange[];
}

function refuseExisting(path: string): void {
  const stat = nodeDisk.stat(path);
  if (stat === undefined) return;
  if (stat.kind === "directory" && nodeDisk.list(path).length === 0) return;
  throw new Exit(ExitCode.error, `${path} exists: move it away, or remove it`);
}

function planOf({ args, flags }: Invocation, { command, from, to }: Way): Plan {
  const dataDir = directoryArgument(args, command);
  const target = plainPath(flags.string("data-dir"));
  const outerWal = plainPath(flags.string("wal-dir"));
  const newWal = plainPath(flags.string("new-wal-dir"));
  const source = {
    memberDir: `${dataDir}/member`,
    walDir: outerWal || `${dataDir}/member/wal`,
  };
  if (flags.bool("in-place")) {
    if (target !== "" || newWal !== "")
      throw badArguments("--in-place leaves no choice of --data-dir and --new-wal-dir");
    const memberDir = `${source.memberDir}.new`;
    const made = { memberDir, walDir: outerWal === "" ? `${memberDir}/wal` : `${outerWal}.new` };
    const places = [source.memberDir, ...(outerWal === "" ? [] : [outerWal])];
    const exchanges = places.map((place) => ({
      place,
      made: `${place}.new`,
      aside: `${place}.${from}`,
    }));
    return { source, made, dataDir, renames: [], exchanges };
  }
  const place = target || `${dataDir}.${to}`;
  refuseExisting(place);
  if (newWal !== "") refuseExisting(newWal);
  return {
    source,
    made: {
      memberDir: `${place}.new/member`,
      walDir: newWal === "" ? `${place}.new/member/wal` : `${newWal}.new`,
    },
    dataDir: place,
    // The log first: a member does not start on a store without one.
    renames: [
      ...(newWal === "" ? [] : [[`${newWal}.new`, newWal] as const]),
      [`${place}.new`, place],
    ],
    exchanges: [],
  };
}

async function run(invocation: Invocation, way: Way): Promise<void> {
  const plan = planOf(invocation, way);
  const { dataDir, made, source, renames, exchanges } = plan;
  const { io } = invocation;
  if (finishExchange(nodeDisk, dataDir, exchanges)) {
    io.stdout(`Finished the exchange that was interrupted. ${dataDir} is ${way.starts}'s now.\n`);
    return;
  }
  for (const { aside } of exchanges) refuseExisting(aside);
  const leftovers = [...renames.map(([one]) => one), ...exchanges.map((one) => one.made)];
  for (const one of leftovers) nodeDisk.remove(one);
  const progress = new Progress(io, way.command === "adopt" ? "adopting  " : "releasing ");
  const onProgress = (bytes: number, totalBytes: number): void =>
    progress.update(bytes, totalBytes);
  const deps = {
    disk: nodeDisk,
    keyspaces: levelKeyspaces,
    clock: nodeClock,
    isLocked,
    onProgress,
  };
  let taken: TakenMember;
  try {
    taken = await way.take(source, made, deps);
  } catch (error) {
    for (const one of leftovers) nodeDisk.remove(one);
    throw error;
  } finally {
    progress.end();
  }
  for (const [one, place] of renames) {
    nodeDisk.syncDir(one);
    nodeDisk.rename(one, place);
    nodeDisk.syncDir(parentOf(place));
  }
  if (exchanges.length > 0) exchange(nodeDisk, dataDir, exchanges);
  const aside = exchanges.map((one) => one.aside).join(", ") || source.memberDir;
  io.stdout(
    `Member ${idToHex(taken.memberId)} (${taken.name}) of cluster ${idToHex(taken.clusterId)}, ` +
      `of ${taken.members}: revision ${taken.revision}, ${taken.keys} keys, applied index ` +
      `${taken.appliedIndex} of ${taken.lastIndex}, term ${taken.term}, cluster version ` +
      `${taken.clusterVersion ?? "not set"}.\n` +
      `Start ${way.starts} with the flags that the member had and --data-dir=${dataDir}. Once it has ` +
      `run, never start anything on ${aside} again: it would not know what the member has promised since.\n`,
  );
}

/** Runs a command on a member's files; operating errors become an Exit with their text. */
function onMember(task: () => Promise<void>): Promise<void> {
  return reportingErrors(task, (error) => {
    if (error instanceof EtcdMemberError) return error.message;
    if (error instanceof BoltDamageError || error instanceof EtcdFileError)
      return `${error.message}. What to do next: take the files of another member, or restore a snapshot`;
  });
}

const adopting: Way = {
  command: "adopt",
  from: "etcd",
  to: "quorate",
  starts: "quorate",
  take: adoptMember,
};

export const adoptCommand: Command = {
  use: "adopt <etcd data directory> [options]",
  short: "Makes a member's data directory from that of a stopped member of etcd",
  long: `Makes a member's data directory from that of a stopped member of etcd 3.5, 3.6 or 3.7, which stays as
it is. The member keeps its id, its cluster, its log, term and vote, and with them keys and history,
leases, members, users and alarms. "quorateutl release" is the way back.

With --in-place the new files take the place of the old ones, so that the member starts with the
flags that etcd had. It can be interrupted anywhere; run again, it goes on. It needs free space for
the log and once more for the database.`,
  flags: flagsOf("etcd", "quorate"),
  run: (invocation) => onMember(() => run(invocation, adopting)),
};

const releasing: Way = {
  command: "release",
  from: "quorate",
  to: "etcd",
  starts: "etcd",
  take: releaseMember,
};

export const releaseCommand: Command = {
  use: "release <data directory> [options]",
  short: "Makes a data directory for etcd from that of a stopped member",
  long: `Makes a data directory for etcd from that of a stopped member, which stays as it is. The member keeps
its id, its cluster, its log, term and vote, and with them keys and history, leases, members, users
and alarms. "quorateutl adopt" is the other way.

With --in-place the new files take the place of the old ones. It can be interrupted anywhere; run
again, it goes on. It needs free space for the log and once more for the store.

The etcd that starts on it must not be older than the cluster's version, which the output shows.`,
  flags: flagsOf("quorate", "etcd"),
  run: (invocation) => onMember(() => run(invocation, releasing)),
};

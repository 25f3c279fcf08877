/**
 * Bugs that stand around a member, in what it takes for its world. The others are changes of its
 * source (catalogue.ts).
 */
import type { DiskFile, KeyspaceWrite, Random } from "@quorate/host";
import type { Member } from "@quorate/member";
import { EMPTY, raftpb, toLatin1 } from "@quorate/proto";
import { wrappedCall } from "@quorate/rpc";
import type { DiskTwist } from "../disk.ts";
/** The name of a bug of this file. */
export type WorldBug =
  | "votes-not-synced"
  | "commit-without-quorum"
  | "stale-read"
  | "apply-twice"
  | "lost-batch"
  | "watch-skips"
  | "lease-not-renewed";

/** Below this a write to the log holds a vote or a commit index, and no entry of a client. */
const SMALL_WRITE_BYTES = 120;

/** How the disk lies. */
export function twistOf(bug: string | undefined, random: Random): DiskTwist {
  switch (bug) {
    case "votes-not-synced":
      return { file: syncOnlyLarge };
    case "apply-twice":
      // The data goes down without the index that it belongs to.
      return {
        batch: (batch) =>
          random.below(4) === 0 ? batch.filter(({ key }) => !isPosition(key)) : batch,
      };
    case "lost-batch":
      return {
        batch: (batch) =>
          random.below(20) === 0 ? batch.filter(({ key }) => isPosition(key)) : batch,
      };
    default:
      return {};
  }
}

function isPosition(key: KeyspaceWrite["key"]): boolean {
  const name = toLatin1(key);
  return name === "mconsistent_index" || name === "mterm";
}

function syncOnlyLarge(file: DiskFile): DiskFile {
  if (!file.path.endsWith(".wal")) return file;
  let unsyncedBytes = 0;
  return {
    path: file.path,
    readLater: (target, position) => file.readLater(target, position),
    read: (target, position) => file.read(target, position),
    write: (chunks, position) => {
      for (const chunk of chunks) unsyncedBytes += chunk.length;
      file.write(chunks, position);
    },
    dataSync: () => {
      if (unsyncedBytes < SMALL_WRITE_BYTES) return Promise.resolve();
      unsyncedBytes = 0;
      return file.dataSync();
    },
    dataSyncNow: () => file.dataSyncNow(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    preallocate: (sizeBytes) => file.preallocate(sizeBytes),
    writeZeros: (position, lengthBytes) => file.writeZeros(position, lengthBytes),
    size: () => file.size(),
    close: () => file.close(),
  };
}

/** What a member does wrong that is not a matter of its disk. */
export function plantMisbehavior(bug: string | undefined, member: Member): void {
  if (bug === "stale-read") {
    const read = member.read.bind(member);
    member.read = (caller, request) => read(caller, { ...request, linearizable: false });
  }
  if (bug === "lease-not-renewed") member.leases.renew = () => member.minLeaseTtlSeconds;
  if (bug !== "watch-skips") return;
  const { watches } = member;
  const open = watches.open.bind(watches);
  let messages = 0;
  watches.open = (call, client) =>
    open(
      wrappedCall(call, call.context, {
        send: (message) => ++messages % 20 === 0 || call.send(message),
      }),
      client,
    );
}

/** Answers that a sender makes up for its peers. */
export function madeUpAnswers(
  bug: string | undefined,
  messages: readonly raftpb.Message[],
): raftpb.Message[] {
  if (bug !== "commit-without-quorum") return [];
  return messages
    .filter(({ type, entries }) => type === raftpb.MessageType.MsgApp && entries.length > 0)
    .map(({ from, to, term, entries }) =>
      raftpb.Message.create({
        type: raftpb.MessageType.MsgAppResp,
        from: to,
        to: from,
        term,
        index: entries[entries.length - 1].index,
        context: EMPTY,
      }),
    );
}

/** The flags of the commands that make a member's data directory, as etcdutl has them. */
import { existsSync, readdirSync } from "node:fs";
import { type NewMember, newMember } from "@quorate/backup";
import type { Flags, Invocation } from "@quorate/cli";
import { Exit, ExitCode } from "@quorate/cli";
import { plainPath } from "../files/data-dir.ts";
import { checkLocalMember, parseInitialCluster } from "./initial-cluster.ts";

export const newMemberFlags: Flags = {
  "data-dir": {
    kind: "string",
    defaultText: "",
    doc: "data directory to make (default NAME.quorate)",
  },
  "wal-dir": {
    kind: "string",
    defaultText: "",
    doc: "directory of the log to make (default inside the data directory)",
  },
  "initial-cluster": {
    kind: "string",
    defaultText: "default=http://localhost:2380",
    doc: "names and peer URLs of all members of the restored cluster",
  },
  "initial-cluster-token": {
    kind: "string",
    defaultText: "etcd-cluster",
    doc: "token of the restored cluster",
  },
  "initial-advertise-peer-urls": {
    kind: "string",
    defaultText: "http://localhost:2380",
    doc: "this member's peer URLs",
  },
  name: { kind: "string", defaultText: "default", doc: "this member's name" },
};

/**
 * The member of the flags, validated before anything is written. Rejects with Exit, with
 * etcd's texts.
 */
export async function newMemberOf({ flags }: Invocation): Promise<NewMember> {
  const name = flags.string("name");
  const urls = parseInitialCluster(flags.string("initial-cluster"));
  await checkLocalMember(urls, name, flags.string("initial-advertise-peer-urls"));
  const dataDir = plainPath(flags.string("data-dir") || `${name}.quorate`);
  const walDir = plainPath(flags.string("wal-dir"));
  if (existsSync(dataDir) && !isEmptyDirectory(dataDir)) {
    throw new Exit(
      ExitCode.error,
      `data-dir ${JSON.stringify(dataDir)} not empty or could not be read`,
    );
  }
  if (walDir !== "" && existsSync(walDir))
    throw new Exit(ExitCode.error, `wal-dir ${JSON.stringify(walDir)} exists`);
  return newMember(
    name,
    urls,
    flags.string("initial-cluster-token"),
    dataDir,
    walDir || `${dataDir}/member/wal`,
  );
}

function isEmptyDirectory(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** The flags of the commands that make a member's data directory, as etcdutl has them. */
import { existsSync, readdirSync } from "node:fs";
import { type NewMember, newMember } from "@quorate/backup";
import type { Flags, Invocation } from "@quorate/cli";
import { Exit, ExitCode, textFlag } from "@quorate/cli";
import { plainPath } from "../files/data-dir.ts";
import { checkLocalMember, parseInitialCluster } from "./initial-cluster.ts";

export const newMemberFlags: Flags = {
  "data-dir": textFlag("data directory to make (default NAME.quorate)"),
  "wal-dir": textFlag("directory of the log to make (default inside the data directory)"),
  "initial-cluster": textFlag(
    "names and peer URLs of all members of the restored cluster",
    "default=http://localhost:2380",
  ),
  "initial-cluster-token": textFlag("token of the restored cluster", "etcd-cluster"),
  "initial-advertise-peer-urls": textFlag("this member's peer URLs", "http://localhost:2380"),
  name: textFlag("this member's name", "default"),
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

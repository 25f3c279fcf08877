/**
 * A base snapshot of a backup: taken from a member, whole and durable under its name or not there.
 */
import { renameSync } from "node:fs";
import { baseName } from "@quorate/backup";
import type { Client } from "@quorate/client";
import { nodeDisk } from "@quorate/host/node";
import { etcdFileRevision } from "@quorate/store";
import { saveSnapshot } from "../commands/snapshot.ts";
import type { Io } from "../io.ts";

export interface TakenBase {
  readonly path: string;
  readonly revision: number;
  /** What is in it happened before that: names have whole seconds. */
  readonly timeMs: number;
  readonly sizeBytes: number;
}

/**
 * Takes a base into a backup's folder.
 * @param stop gives it up, within one message of the member; the promise rejects with its reason
 * then
 * @returns rejects with ClientError, or with an Error that says what is wrong with the stream, the
 * file or the disk
 */
export async function takeBase(
  client: Client,
  dir: string,
  io: Io,
  stop: AbortSignal,
): Promise<TakenBase> {
  const incoming = `${dir}/incoming`;
  const { sizeBytes } = await saveSnapshot(client, incoming, io, { stop });
  const timeMs = Math.ceil(Date.now() / 1000) * 1000;
  const revision = etcdFileRevision(nodeDisk, incoming);
  const path = `${dir}/${baseName(revision, timeMs)}`;
  renameSync(incoming, path);
  nodeDisk.syncDir(dir);
  return { path, revision, timeMs, sizeBytes };
}

/**
 * A single member in the same process: the store of an API server without --etcd-servers. It
 * listens on unix sockets in a directory of its own, which no other user can open.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { ConfigError, loadConfig } from "@quorate/server";

/** A segment is written with zeros before its first use, so a large one delays the first start. */
const WAL_SEGMENT_BYTES = 8_000_000;

export interface EmbeddedMember {
  /** For connect(). */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export interface EmbeddedMemberOptions {
  /** Of the member; made where it is missing. */
  readonly dataDir: string;
  /** More of the member's flags, for tests ("--heartbeat-interval=10"). */
  readonly flags: readonly string[];
  readonly logger: Logger;
  /** The member has ended by itself. */
  onEnd(error: unknown): void;
}

/** Starts the member; resolves when it serves. */
export async function startEmbeddedMember({
  dataDir,
  flags,
  logger,
  onEnd,
}: EmbeddedMemberOptions): Promise<EmbeddedMember> {
  const { serve } = await import("@quorate/server/node");
  // A socket's path may have 107 bytes, which those of data directories often exceed.
  const sockets = mkdtempSync(join(tmpdir(), "quorate-"));
  const [client, peer] = ["client", "peer"].map((name) => `unix://${join(sockets, name)}`);
  const invocation = await loadConfig(
    [
      ...["--data-dir", dataDir],
      ...["--listen-client-urls", client, "--advertise-client-urls", client],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      ...["--initial-cluster", `default=${peer}`],
      ...flags,
    ],
    {},
    () => "",
  );
  if (invocation.kind !== "run") throw new ConfigError("BadFlag", "the member has nothing to run");
  let isStopping = false;
  const serving = await serve(invocation.config, {
    clock: nodeClock,
    logger,
    walSegmentBytes: WAL_SEGMENT_BYTES,
    onEnd: (error) => {
      if (!isStopping) onEnd(error);
    },
  });
  await serving.member.ready;
  return {
    endpoint: client,
    async stop() {
      isStopping = true;
      await serving.stop();
      rmSync(sockets, { recursive: true, force: true });
    },
  };
}

/** Resources of a member in its process, from its start to its end: budgets, TLS, peer calls. */
import { chmodSync, statSync } from "node:fs";
import type { Clock, Logger, Random } from "@quorate/host";
import {
  ensureSelfCert,
  followTlsFiles,
  machineLimits,
  nodeRandom,
  type TlsFileSource,
} from "@quorate/host/node";
import { type Budgets, budgetsFor } from "@quorate/member";
import { PeerCalls } from "@quorate/transport/node";
import type { ServerConfig, TlsConfig } from "../src/config/server-config.ts";
import type { SignedTokens } from "./jwt-key-files.ts";
import { openPorts, type Ports, tlsFiles } from "./listen.ts";

/** The parts of the process that everything here works with. */
export interface ProcessDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface Resources {
  readonly budgets: Budgets;
  readonly random: Random;
  /** All addresses, open; connections wait there until a server takes them. */
  readonly ports: Ports;
  readonly peerTls: TlsFileSource | undefined;
  readonly clientTls: TlsFileSource | undefined;
  readonly peerCalls: PeerCalls;
  /** Tokens with signatures, where --auth-token asks for them. */
  readonly signedTokens: SignedTokens | undefined;
  /** Has `task` run at the release. */
  onRelease(task: () => void): void;
  /** Closes all that was acquired; a second call does nothing. */
  release(): void;
}

/** Acquires them; rejects where an address is taken or a certificate cannot be read. */
export async function acquire(
  config: ServerConfig,
  { clock, logger }: ProcessDeps,
): Promise<Resources> {
  const budgets = measuredBudgets(logger);
  const ports = await openPorts(config, logger.child("embed"));
  const tasks: (() => void)[] = [() => ports.close()];
  const release = () => {
    for (const task of tasks.splice(0)) task();
  };
  try {
    closeDirectories(config, logger);
    for (const [tls, caller] of [
      [config.peerTls, "transport"],
      [config.clientTls, "rpc"],
    ] as const) {
      if (tls?.selfCert !== undefined)
        await ensureSelfCert(tls.selfCert, clock, logger.child(caller));
    }
    const tlsSource = async (tls: TlsConfig | undefined, caller: string) => {
      if (tls === undefined) return undefined;
      const source = await followTlsFiles(tlsFiles(tls), { clock, logger: logger.child(caller) });
      tasks.push(() => source.close());
      return source;
    };
    const peerTls = await tlsSource(config.peerTls, "transport");
    const clientTls = await tlsSource(config.clientTls, "rpc");
    const peerCalls = new PeerCalls(peerTls, config.localAddress);
    tasks.push(() => peerCalls.close());
    const signedTokens = await openTokens(config, { clock, logger });
    tasks.push(() => signedTokens?.keys.close());
    return {
      budgets,
      random: nodeRandom(),
      ports,
      peerTls,
      clientTls,
      peerCalls,
      signedTokens,
      onRelease: (task) => void tasks.push(task),
      release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

async function openTokens({ jwt }: ServerConfig, { clock, logger }: ProcessDeps) {
  if (jwt === undefined) return undefined;
  // Few members have signed tokens, and their library is large.
  const { openSignedTokens } = await import("./jwt-key-files.ts");
  return openSignedTokens(jwt, { clock, logger: logger.child("auth") });
}

function measuredBudgets(logger: Logger): Budgets {
  const machine = machineLimits();
  const budgets = budgetsFor(machine);
  logger.info("what this member may use of its machine", {
    "memory-bytes": machine.memoryBytes,
    "open-files": machine.openFiles,
    "client-connections": budgets.clientConnections,
    "http-connections": budgets.httpConnections,
    "peer-connections": budgets.peerConnections,
  });
  return budgets;
}

const PRIVATE_DIR_MODE = 0o700;
/** The bits of everybody but the owner. */
const OTHERS = 0o077;

/**
 * The permission bits of a directory that others may enter or read; undefined for a private one,
 * or for none.
 */
function openMode(dir: string): number | undefined {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isDirectory()) return undefined;
  const mode = stat.mode & 0o777;
  return (mode & OTHERS) === 0 ? undefined : mode;
}

const octal = (mode: number): string => `0${mode.toString(8)}`;

/**
 * The store's files are for the member's own user: keys, values and password hashes are in them.
 * New directories are 0700 and new files 0600. Directories of an earlier release, or those that an
 * operator made, may be open to others:
 *
 *     DATA-DIR              left as it is, with etcd's warning: it may be a mount point or shared
 *                           on purpose
 *     DATA-DIR/member, fixtures, and --wal-dir   closed: only a member uses them
 *
 * Closes a member's directories to others, and warns where that cannot be done. Never throws for
 * what the file system refuses.
 */
function closeDirectories(config: Pick<ServerConfig, "dataDir" | "walDir">, logger: Logger): void {
  const { dataDir, walDir } = config;
  const dataMode = openMode(dataDir);
  if (dataMode !== undefined) {
    logger.warn("check file permission", {
      error:
        `directory "${dataDir}" exist, but the permission is "${octal(dataMode)}". The recommended permission is "0700" to prevent ` +
        "possible unprivileged access to the data",
    });
  }
  for (const dir of [`${dataDir}/member`, `${dataDir}/fixtures`, walDir]) {
    const mode = openMode(dir);
    if (mode === undefined) continue;
    try {
      chmodSync(dir, PRIVATE_DIR_MODE);
      logger.info("closed a directory of the member to other users", {
        path: dir,
        "mode-before": octal(mode),
        mode: octal(PRIVATE_DIR_MODE),
      });
    } catch (error) {
      logger.warn("failed to close a directory of the member to other users", {
        path: dir,
        mode: octal(mode),
        error: (error as Error).message,
      });
    }
  }
}

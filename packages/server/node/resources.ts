/** Resources of a member in its process, from its start to its end: budgets, TLS, peer calls. */
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
import type { ServerConfig, TlsConfig } from "../src/config/index.ts";
import { openPorts, type Ports, tlsFiles } from "./listen.ts";
import { closeDirectories } from "./private-directories.ts";
import type { SignedTokens } from "./tokens.ts";

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
  const { openSignedTokens } = await import("./tokens.ts");
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

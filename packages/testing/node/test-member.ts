/** One member of a cluster, as a test sees it. */
import type { Client } from "@quorate/client";
import type { ClientOptions } from "@quorate/client/node";

/** A member of a test's cluster. */
export interface TestMember {
  readonly name: string;
  /** Its client URL, the same after each start. */
  readonly endpoint: string;
  readonly peerUrl: string;
  /** Its member id; 0n before its first start. */
  readonly id: bigint;
  /** Whether it runs, paused or not. */
  readonly isRunning: boolean;
  readonly isPaused: boolean;
  readonly isLeader: boolean;
  /** A client of this member alone, without sockets. Throws while it does not run. */
  client(options?: Pick<ClientOptions, "auth" | "timeoutMs" | "maxPendingCalls">): Client;
  /** Starts it on the files that it has; resolves when it serves. Does nothing if it runs. */
  start(): Promise<void>;
  /** Resolves when it takes part in a cluster that has a leader. */
  ready(): Promise<void>;
  /** Ends it as kill -9 does. What was acknowledged is still on its disk. */
  kill(): Promise<void>;
  /** Ends it in order: it hands leadership over first. */
  stop(): Promise<void>;
  /** As kill -STOP: it does nothing, and its connections stay. */
  pause(): void;
  /** It goes on, with what has waited. */
  resume(): void;
  /**
   * From now on a sync of its disk takes so long; 0: none. The log finds out with the first write,
   * which may still be fast.
   */
  slowDisk(syncMs: number): void;
}

/**
 * Clients from another package that live in a run beside its own: they use the same network, see
 * the same faults, and judge for themselves what they see.
 */
import type { Random } from "@quorate/host";
import type { ClientNetwork } from "./client-network.ts";
import type { ModelState } from "./model.ts";
import type { Node } from "./node.ts";
import type { Scheduler } from "./scheduler.ts";

export interface Guests {
  /** Begins, as faults do. */
  start(): void;
  /** All is healed: resolves when everything was seen and judged. */
  finish(): Promise<void>;
}

export interface GuestDeps {
  readonly nodes: readonly Node[];
  readonly network: ClientNetwork;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /**
   * Called with each state of the store, when the first member applies what makes it; and again
   * with the present one after a compaction.
   */
  onRevision(listener: (state: ModelState) => void): void;
  /** What was compacted last, on any member. */
  compactRevision(): number;
  /** Something is wrong; the run ends. */
  fail(error: unknown): void;
}

export type GuestFactory = (deps: GuestDeps) => Guests;

/**
 * Clients from another package that live in a run beside its own: they use the same network, see
 * the same faults, and judge for themselves what they see.
 */
import type { Random } from "@quorate/host";
import type { Scheduler } from "./base/scheduler.ts";
import type { Safety } from "./check/safety.ts";
import type { Exchanges } from "./exchanges.ts";
import type { Node } from "./node.ts";

export interface Guests {
  /** Called after each event: what was applied is known before any client can see it. */
  look(): void;
  /**
   * All has been healed, and members are alike: resolves, within two simulated minutes, when
   * everything was seen and judged. Guests begin by themselves, and write no more when the faults
   * have ended.
   */
  finish(): Promise<void>;
}

export interface GuestDeps {
  readonly nodes: readonly Node[];
  readonly network: Exchanges;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** What the store holds at each revision, as soon as a member has applied what makes it. */
  readonly safety: Pick<Safety, "lastState" | "stateAt" | "compactRevision">;
  /** Something is wrong; the run ends. */
  fail(error: unknown): void;
}

export type GuestFactory = (deps: GuestDeps) => Guests;

/**
 * Whether a member goes on, and how it ends. From the first reason to end on, callers are refused
 * and the loop stands still; the lifecycle closes the parts (lifecycle.ts).
 */
import { errorOf } from "@quorate/proto";
import type { Slices } from "../reads/slices.ts";
import type { Proposals } from "./proposals.ts";
import type { Reads } from "./reads.ts";
import type { LoopTurns } from "./turns.ts";

/** Callers that wait for the member. */
export interface LifetimeParts {
  readonly turns: LoopTurns;
  readonly proposals: Pick<Proposals, "failAll">;
  readonly reads: Pick<Reads, "failAll">;
  readonly slices: Pick<Slices, "close">;
}

export class Lifetime {
  readonly #parts: LifetimeParts;
  readonly #ended = Promise.withResolvers<{ readonly error: unknown }>();
  #hasEnded = false;

  constructor(parts: LifetimeParts) {
    this.#parts = parts;
  }

  /** True from the first reason to end on: nothing new is begun. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Resolves at the first reason to end that comes from within the member, with the error, if it is
   * one; never rejects.
   */
  get ended(): Promise<{ readonly error: unknown }> {
    return this.#ended.promise;
  }

  /** The member has to end by itself. @param error the reason; undefined where all is in order */
  readonly end = (error?: unknown): void => {
    if (this.stop()) this.#ended.resolve({ error });
  };

  /** Its owner ends it. @returns false where it has ended already */
  stop(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    this.#parts.turns.stop();
    this.stopServing();
    return true;
  }

  /** Refuses clients' requests from now on, and those that wait. */
  readonly stopServing = (): void => {
    const { proposals, reads, slices } = this.#parts;
    proposals.failAll(errorOf("Stopped"));
    reads.failAll(errorOf("Stopped"));
    slices.close(errorOf("Stopped"));
  };
}

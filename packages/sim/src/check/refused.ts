/**
 * What a refused request must not have changed:
 *
 *   REFUSED-1  an entry that comes to an error leaves the store as it was: no record is written,
 *              the revision, the sums and the leases are
 *              what they were, and each lease has the keys that the model has for it
 *   REFUSED-2  a write whose response said that it took no effect made no revision
 */
import type { Store } from "@quorate/store";
import type { ModelOp, ModelRequest } from "../base/model.ts";
import { type Operation, words } from "../base/operation.ts";
import { type Safety, violate } from "./safety.ts";

/**
 * Every so many errors of a store all its leases and keys are compared: under an alarm nearly every
 * entry comes to an error.
 */
const COMPARE_EVERY_ERRORS = 4;

/** What an error leaves alone, in numbers. */
interface Sums {
  readonly revision: number;
  readonly pendingOps: number;
  readonly liveBytes: number;
  readonly leases: number;
  readonly alarms: number;
  /** The first entry of a token with roles is noted, whatever comes of it. */
  readonly hasTokenRoles: boolean;
}

function sumsOf({ mvcc, pendingOps, liveBytes, lessor, alarms, auth }: Store): Sums {
  return {
    revision: mvcc.currentRevision,
    pendingOps,
    liveBytes,
    leases: lessor.count,
    alarms: alarms.any ? alarms.list().length : 0,
    hasTokenRoles: auth.hasTokenRoles,
  };
}

/** REFUSED-1, for one store of one member. */
export class RefusedEntries {
  readonly #name: string;
  readonly #store: Store;
  readonly #safety: Safety;
  #before: Sums | undefined;
  #errors = 0;

  constructor(name: string, store: Store, safety: Safety) {
    this.#name = name;
    this.#store = store;
    this.#safety = safety;
  }

  /** An entry is about to be applied. */
  begins(): void {
    this.#before = sumsOf(this.#store);
  }

  /**
   * It has come to an error. @param inSteps other work may have gone on meanwhile, such as a batch
   * on its way to the disk
   */
  failed(index: number, error: Error, inSteps: boolean): void {
    const after = sumsOf(this.#store);
    for (const name of ["revision", "leases", "alarms", "pendingOps", "liveBytes"] as const) {
      // Compaction and batches go on between steps.
      const isNoted = this.#before?.hasTokenRoles !== after.hasTokenRoles;
      if ((inSteps || isNoted) && (name === "pendingOps" || name === "liveBytes")) continue;
      if (this.#before === undefined || this.#before[name] === after[name]) continue;
      const change = `${name} ${this.#before[name]}, and ${after[name]} after it`;
      violate(
        "REFUSED-1",
        `${this.#name} at index ${index}: "${error.message}" changed the store: ${change}`,
      );
    }
    if (this.#errors++ % COMPARE_EVERY_ERRORS === 0) this.#compareLeases(index, error);
  }

  #compareLeases(index: number, error: Error): void {
    const { lessor, mvcc } = this.#store;
    const state = this.#safety.stateAt(mvcc.currentRevision);
    if (state === undefined) return;
    for (const { id } of lessor.all()) {
      const actual = [...lessor.keysOf(id)].sort().join(" ");
      const expected = state.keysOf(`${id}`).join(" ");
      if (actual === expected) continue;
      const change = `the lease ${id} has the keys ${actual}, not ${expected}`;
      violate("REFUSED-1", `${this.#name} at index ${index}: after "${error.message}" ${change}`);
    }
  }
}

/** REFUSED-2. Throws a Violation. */
export function checkRefusedWrites(operations: readonly Operation[], safety: Safety): void {
  const refused = operations.filter(
    ({ request, outcome, client }) => outcome?.kind === "refused" && isUnique(request, client),
  );
  if (refused.length === 0) return;
  const made = new Map<string, number>();
  for (let revision = 2; revision <= safety.lastState.revision; revision++) {
    const request = safety.requestAt(revision);
    if (request !== undefined && request.kind !== "revoke")
      made.set(JSON.stringify(request), revision);
  }
  for (const op of refused) {
    const revision = made.get(JSON.stringify(op.request));
    if (revision !== undefined)
      violate("REFUSED-2", `a refused write made revision ${revision}: ${words(op)}`);
  }
}

/** Whether no other request is equal to it: a client puts its name and a number into each value. */
function isUnique(request: ModelRequest | ModelOp, client: string): boolean {
  if (request.kind === "put") return request.value.startsWith(`${client}.`);
  return (
    request.kind === "txn" &&
    [...request.success, ...request.failure].some((op) => isUnique(op, client))
  );
}

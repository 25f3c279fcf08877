/** What the stores of a resource are built from, besides its declaration. */
import type { Clock, Random } from "@quorate/host";
import type { StorageInterface } from "../storage/interface.ts";

/** What the stores of all resources share. */
export interface RegistryDeps {
  /** Wall time, for creationTimestamp, deletionTimestamp and ages. */
  readonly clock: Clock;
  /** For uids and generated names: seeded from the system's randomness. */
  readonly random: Random;
  /** A garbage collector runs: deletions may set its finalizers. */
  readonly collectsGarbage: boolean;
}

export interface ResourceParts extends RegistryDeps {
  readonly storage: StorageInterface;
}

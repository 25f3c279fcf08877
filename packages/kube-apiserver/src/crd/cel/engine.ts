/** What compiles expressions; it is loaded with the first one. */
import type { CelEngine } from "./library.ts";

export type { CelEngine } from "./library.ts";

let loaded: Promise<CelEngine> | undefined;

/** Makes the environment once. */
export function loadCel(): Promise<CelEngine> {
  loaded ??= import("./library.ts").then(({ makeEngine }) => makeEngine());
  return loaded;
}

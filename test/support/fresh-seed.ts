/**
 * A seed that no build had before, and that a commit keeps: the first digits of the hash of its
 * last commit. Tests with random input use it beside their fixed seeds and print it where they
 * fail. `QUORATE_FRESH_SEED=N` takes another; without git it is 1.
 */
import { execFileSync } from "node:child_process";

/** Between 0 and 2^28 - 1. */
export function freshSeed(): number {
  const asked = process.env["QUORATE_FRESH_SEED"];
  if (asked !== undefined) {
    if (!/^\d{1,9}$/.test(asked))
      throw new Error(`QUORATE_FRESH_SEED=${asked}: it is a number of up to nine digits`);
    return Number(asked);
  }
  try {
    const hash = execFileSync("git", ["rev-parse", "HEAD"], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      stdio: "pipe",
    });
    return Number.parseInt(hash.slice(0, 7), 16);
  } catch {
    return 1;
  }
}

/**
 * What was found so far, by the mutant's name: kept in a file, so that a long run can be done in
 * portions.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { Found } from "./layers.ts";

/** A layer that has not run is absent; null: it ran, or does not apply, and caught nothing. */
export interface Outcome {
  readonly tests?: Found | null;
  /** The simulator, or Raft's random clusters. */
  readonly search?: Found | null;
}

export type Results = Map<string, Outcome>;

export const isCaught = ({ tests, search }: Outcome): boolean => Boolean(tests) || Boolean(search);

/**
 * Reads the file; one that does not exist is empty. Throws an Error that names a file that holds
 * something else.
 */
export function readResults(path: string): Results {
  if (!existsSync(path)) return new Map();
  const parsed = (() => {
    try {
      return JSON.parse(readFileSync(path, "utf8")) as unknown;
    } catch {
      return undefined;
    }
  })();
  const isRecord = (value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isRecord(parsed) || !Object.values(parsed as object).every(isRecord)) {
    throw new Error(`${path} does not hold results of mutants: name another file, or remove it`);
  }
  return new Map(Object.entries(parsed as Record<string, Outcome>));
}

/** Replaces the file by rename, so that an interrupted run leaves the old or the new one. */
export function writeResults(path: string, results: Results): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(Object.fromEntries(results), undefined, 1)}\n`);
  renameSync(`${path}.new`, path);
}

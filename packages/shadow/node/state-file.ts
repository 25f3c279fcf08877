/**
 * What a shadow keeps of itself in its data directory, so that it goes on after its host died, or
 * leaves by `--leave`:
 *
 *     DATA-DIR/shadow.json   written before the member is added, and after each comparison
 */
import { mkdirSync } from "node:fs";
import { type Io, systemReason } from "@quorate/cli";
import { writeWholeFile } from "@quorate/host/node";
import type { FoundDifference } from "../src/report.ts";

const FILE_MODE = 0o600;
const DIR_MODE = 0o700;

export interface ShadowState {
  readonly name: string;
  readonly peerUrls: readonly string[];
  /** Client URLs of the cluster's members. */
  readonly endpoints: readonly string[];
  /** In hexadecimal; empty before it was added. */
  readonly memberId: string;
  /** In ms since 1970. */
  readonly startedMs: number;
  readonly hasLeft: boolean;
  /** What was found so far. */
  readonly firstRevision: number;
  readonly equalThrough: number;
  readonly equal: number;
  readonly difference: FoundDifference | null;
}

const pathOf = (dataDir: string): string => `${dataDir}/shadow.json`;

/** Undefined where the directory is no shadow's. Throws Error for a file that is none of ours. */
export function readState(dataDir: string, io: Io): ShadowState | undefined {
  let text: string;
  try {
    text = Buffer.from(io.readFile(pathOf(dataDir))).toString();
  } catch (error) {
    if (/no such file/.test(systemReason(error))) return undefined;
    throw error;
  }
  const state = Object(JSON.parse(text)) as Partial<ShadowState>;
  if (typeof state.name !== "string" || !Array.isArray(state.peerUrls))
    throw new Error(`${pathOf(dataDir)} is not the file of a shadow`);
  return state as ShadowState;
}

/** Throws Node's errors. */
export function writeState(dataDir: string, state: ShadowState): void {
  mkdirSync(dataDir, { recursive: true, mode: DIR_MODE });
  writeWholeFile(pathOf(dataDir), `${JSON.stringify(state, null, 2)}\n`, FILE_MODE);
}

/** The feature gates of etcd 3.7: their names, defaults, and how --feature-gates is read. */
import { ConfigError } from "./errors.ts";
import { parseBool } from "./values.ts";

export type GateStage = "ALPHA" | "BETA";

/** One gate. */
export interface Gate {
  readonly default: boolean;
  readonly stage: GateStage;
  /** What turning it away from its default lacks today, or undefined where it works. */
  readonly why: string | undefined;
}

/** All gates by name. */
export const gates: ReadonlyMap<string, Gate> = new Map<string, Gate>([
  ["CompactHashCheck", { default: false, stage: "ALPHA", why: undefined }],
  [
    "FastLeaseKeepAlive",
    { default: true, stage: "BETA", why: "keep-alives wait only where they must" },
  ],
  ["InitialCorruptCheck", { default: false, stage: "ALPHA", why: undefined }],
  ["LeaseCheckpoint", { default: true, stage: "ALPHA", why: undefined }],
  ["LeaseCheckpointPersist", { default: true, stage: "ALPHA", why: "checkpoints are always kept" }],
  ["PriorityRequest", { default: false, stage: "ALPHA", why: undefined }],
  ["SetMemberLocalAddr", { default: false, stage: "ALPHA", why: undefined }],
  [
    "StopGRPCServiceOnDefrag",
    { default: false, stage: "ALPHA", why: "defragmentation does not stop the service here" },
  ],
  [
    "TxnModeWriteWithSharedBuffer",
    { default: true, stage: "BETA", why: "it steers a buffer that this store does not have" },
  ],
]);

/** Gates that set all of a stage. */
export const stageGates: ReadonlyMap<string, GateStage> = new Map([
  ["AllAlpha", "ALPHA"],
  ["AllBeta", "BETA"],
]);

/** The state of every gate, by name. */
export type Gates = ReadonlyMap<string, boolean>;

/**
 * Reads "Name=true,Other=false". AllAlpha and AllBeta set all gates of a stage that are not named
 * themselves. Throws ConfigError.
 */
export function parseGates(pairs: readonly string[]): Gates {
  const named = new Map<string, boolean>();
  const stages = new Map<GateStage, boolean>();
  for (const pair of pairs) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const name = (at < 0 ? pair : pair.slice(0, at)).trim();
    if (at < 0)
      throw new ConfigError("BadValue", `--feature-gates: missing bool value for ${name}`);
    const text = pair.slice(at + 1).trim();
    let value: boolean;
    try {
      value = parseBool(text);
    } catch {
      throw new ConfigError("BadValue", `--feature-gates: invalid value of ${name}=${text}`);
    }
    const stage = stageGates.get(name);
    if (stage !== undefined) stages.set(stage, value);
    else if (gates.has(name)) named.set(name, value);
    else throw new ConfigError("BadValue", `--feature-gates: unrecognized feature gate: ${name}`);
  }
  const result = new Map<string, boolean>();
  for (const [name, gate] of gates)
    result.set(name, named.get(name) ?? stages.get(gate.stage) ?? gate.default);
  if (result.get("LeaseCheckpointPersist") === true && result.get("LeaseCheckpoint") === false) {
    // One that is on by default goes with the other.
    if (named.get("LeaseCheckpointPersist") === undefined)
      return result.set("LeaseCheckpointPersist", false);
    throw new ConfigError(
      "Contradiction",
      "enabling feature gate LeaseCheckpointPersist requires enabling feature gate LeaseCheckpoint",
    );
  }
  return result;
}

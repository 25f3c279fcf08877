/** The kinds of faults, and how often each is chosen in a run. */
import type { Random } from "@quorate/host";

/** Every kind of fault; their order decides what seeds draw. */
export const FAULT_KINDS = [
  "powerLoss",
  "kill",
  "crashAtPoint",
  "stop",
  "pause",
  "isolate",
  "split",
  "oneWay",
  "slowLink",
  "stallLink",
  "slowDisk",
  "diskFull",
  "diskError",
  "backendError",
  "bitFlip",
  "slowCpu",
  "clockJump",
  "moveLeader",
  "allPowerLoss",
  "crashAtDisk",
  "readError",
  "crashInstall",
  "deaf",
  "mute",
  "stallAll",
  "slowHandover",
  "failedSync",
  "tailFlip",
  "liveFlip",
  "recordDamage",
  "lyingSync",
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Faults of disks that were thought of later: chosen as often as the option harshDisks says. */
export const LATER_DISK = [
  "failedSync",
  "tailFlip",
  "liveFlip",
  "recordDamage",
  "lyingSync",
] as const satisfies readonly FaultKind[];
/**
 * Faults that are not drawn with the others of mixed runs: those of themes, and those of streams of
 * their own.
 */
const DRAWN_APART: readonly FaultKind[] = ["slowHandover", ...LATER_DISK];

const NETWORK: readonly FaultKind[] = [
  "isolate",
  "split",
  "oneWay",
  "slowLink",
  "stallLink",
  "deaf",
  "mute",
  "stallAll",
];
const DISK: readonly FaultKind[] = [
  "slowDisk",
  "diskFull",
  "diskError",
  "backendError",
  "bitFlip",
  "readError",
];
const CRASHES: readonly FaultKind[] = [
  "powerLoss",
  "kill",
  "crashAtPoint",
  "stop",
  "allPowerLoss",
  "crashAtDisk",
  "crashInstall",
];

/** Weights of all kinds: those chosen, 0 for the others. */
export function weightsOf(chosen: Partial<Record<FaultKind, number>>): Record<FaultKind, number> {
  const weights = {} as Record<FaultKind, number>;
  for (const kind of FAULT_KINDS) weights[kind] = chosen[kind] ?? 0;
  return weights;
}

/** The weights of a mixed run. @param on groups that may strike */
export function drawFaults(
  random: Random,
  on: { network: boolean; disk: boolean; crashes: boolean },
): Record<FaultKind, number> {
  const weights = weightsOf({});
  for (const kind of FAULT_KINDS) {
    if (DRAWN_APART.includes(kind)) continue;
    // Drawn for each, also where its group is off: a group's switch changes nothing else.
    const weight = [0, 1, 1, 4][random.below(4)];
    const off =
      (NETWORK.includes(kind) && !on.network) ||
      (DISK.includes(kind) && !on.disk) ||
      (CRASHES.includes(kind) && !on.crashes);
    weights[kind] = off ? 0 : weight;
  }
  return weights;
}

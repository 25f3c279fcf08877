/**
 * What was thought of later than the first options: each drawn from a stream of its own, so that
 * what seeds drew before stays as it was.
 */
import { SeededRandom } from "@quorate/host";
import type { Theme } from "./themes.ts";

/** Draws them. @param network whether the network fails in this run */
export function drawLater(seed: number, theme: Theme, network: boolean) {
  const belowOf = (stream: string, below: number) =>
    new SeededRandom(BigInt(seed)).fork(stream).below(below);
  return {
    ...drawOperations(seed),
    wholeApi: belowOf("whole api", 3) === 0,
    ...drawHostility(seed),
    corruption: drawCorruption(seed, network),
    clientWires: belowOf("client wires", 4) === 0,
    oneWayDials: belowOf("one-way dials", 16) === 0,
    harshDisks: theme === "mixed" && belowOf("harsh disks", 5) === 0 ? 2 : 0,
    ...drawUsers(seed, theme),
    ...drawRangeStreams(seed, theme),
    electionAdvance: belowOf("election advance", 4) === 0,
    smallBounds: belowOf("small bounds", 6) === 0,
    smallSteps: belowOf("short steps", 4) === 0,
    longDeafness: belowOf("long deafness", 2) === 0,
    logStalls: belowOf("log stalls", 3) === 0,
    frontMs: drawFrontEnds(seed),
    etcdMembers: 0,
  };
}

/**
 * Of clusters with members of etcd: users are checked elsewhere, an operator deals with members
 * that differ and with full ones, and who reads a stream of etcd's must be able to dial.
 */
export const ETCD_RUNS = { users: false, oneWayDials: false, selfHeal: false };

function drawFrontEnds(seed: number): number {
  const random = new SeededRandom(BigInt(seed)).fork("front-ends");
  return random.below(8) === 0 ? [1, 10, 50][random.below(3)] : 0;
}

function drawOperations(seed: number) {
  const random = new SeededRandom(BigInt(seed)).fork("operations");
  const one = <T>(...choices: T[]): T => choices[random.below(choices.length)];
  return {
    corruptCheckMs: one(0, 0, 400, 1500),
    compactHashCheckMs: one(0, 0, 300, 2000),
    initialCorruptCheck: one(false, false, false, true),
    selfHeal: one(false, true),
    sabotageEveryMs: one(0, 0, 0, 0, 0, 0, 0, 600, 2500),
    quotaAutoDisarm: one(true, true, false),
    moves: one(true, true, false),
    replaceEveryMs: one(0, 0, 1500),
    autoPromote: one(false, false, true),
    maxLearners: one(1, 2, 2, 3),
    losesMajority: one(false, false, false, false, false, true),
    archiveEveryMs: one(0, 0, 0, 500, 2000),
    restores: one(true, false),
    applySteps: one(0, 1, 1, 3),
    readSteps: one(0, 1, 2, 4),
  };
}

function drawHostility(seed: number) {
  const random = new SeededRandom(BigInt(seed)).fork("hostility");
  const one = <T>(...choices: T[]): T => choices[random.below(choices.length)];
  return { hostileEveryMs: one(0, 0, 100, 500), poisonEveryMs: one(0, 0, 0, 300, 1500) };
}

function drawUsers(seed: number, theme: Theme) {
  const random = new SeededRandom(BigInt(seed)).fork("users");
  const one = <T>(...choices: T[]): T => choices[random.below(choices.length)];
  const users = random.below(10) === 0 && (theme === "mixed" || theme === "snapshots");
  return {
    users,
    usersEveryMs: one(20, 60, 200),
    signedTokens: one(false, false, true),
    tokenTtlSeconds: one(2, 300, 300),
  };
}

function drawCorruption(seed: number, network: boolean): number {
  const rate = [0, 0, 0.001, 0.01][new SeededRandom(BigInt(seed)).fork("corruption").below(4)];
  return network ? rate : 0;
}

function drawRangeStreams(seed: number, theme: Theme) {
  const random = new SeededRandom(BigInt(seed)).fork("range streams");
  const isOn = random.below(8) === 0 && (theme === "mixed" || theme === "snapshots");
  return { streamEveryMs: isOn ? [40, 150][random.below(2)] : 0 };
}

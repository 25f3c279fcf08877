/**
 * Clusters of members of etcd and of Quorate: which programs their members run, in drawn
 * proportion, and how a member of one program takes the place of one of another.
 *
 * Such a cluster begins as etcd's. Its members are etcd's of one release, or of two that follow
 * each other, as in a rolling upgrade. All of etcd's checks for corruption are on.
 */
import type { Random } from "@quorate/host";
import { type Executable, etcdNewest, etcdOf, quorate } from "../support/executables.ts";

/** The program of a member. */
export interface Program {
  /** "quorate", or etcd's release. */
  readonly name: "quorate" | Release;
  readonly executable: Executable;
  readonly flags: readonly string[];
}

const RELEASES = ["3.5", "3.6", "3.7"] as const;
type Release = (typeof RELEASES)[number];

/** Releases that run beside each other. */
const PAIRINGS: readonly (readonly Release[])[] = [
  ["3.5"],
  ["3.6"],
  ["3.7"],
  ["3.5", "3.6"],
  ["3.6", "3.7"],
];

const CHECK_EVERY = "4s";
const GATES = "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true";
const CHECKS: readonly string[] = [
  GATES,
  `--corrupt-check-time=${CHECK_EVERY}`,
  `--compact-hash-check-time=${CHECK_EVERY}`,
];
const CHECKS_3_5: readonly string[] = [
  "--experimental-initial-corrupt-check=true",
  "--experimental-compact-hash-check-enabled=true",
  `--experimental-corrupt-check-time=${CHECK_EVERY}`,
  `--experimental-compact-hash-check-time=${CHECK_EVERY}`,
];

/** Many requests are a line of the log, whose reader a fault stops. */
const LOGS_MUCH = "--warning-apply-duration=200us";

const executableOf = (release: Release): Executable | undefined =>
  release === "3.7" ? (etcdNewest ?? etcdOf("3.7")) : etcdOf(release);

/** A member of Quorate in a cluster without etcd's. */
export const oursAlone = (flags: readonly string[]): Program => ({
  name: "quorate",
  executable: quorate,
  flags: [LOGS_MUCH, ...flags],
});

/** Why no mixed cluster can run here; undefined if one can. */
export function mixtureTrouble(): string | undefined {
  const some = RELEASES.some((release) => executableOf(release) !== undefined);
  return some ? undefined : "no etcd 3.5, 3.6 or 3.7 is installed (QUORATE_TEST_ETCD_NEWEST)";
}

/** A draw of programs for a cluster. */
export class Mixture {
  readonly #random: Random;
  readonly #ours: Program;
  readonly #theirs: readonly Program[];

  /**
   * Draws releases of those that are installed.
   * @param flags for all members, in etcd 3.7's words
   * @param installed the executable of a release, where there is one
   */
  constructor(random: Random, flags: readonly string[], installed = executableOf) {
    this.#random = random;
    const possible = PAIRINGS.filter((releases) => releases.every(installed));
    this.#theirs = this.#one(possible).map((release) => ({
      name: release,
      executable: installed(release)!,
      flags: release === "3.5" ? [...CHECKS_3_5, ...flags.map(as35)] : [...CHECKS, ...flags],
    }));
    this.#ours = { ...oursAlone(flags), flags: [LOGS_MUCH, ...CHECKS, ...flags] };
  }

  /** Those that found a cluster: members of etcd. */
  founders(size: number): Program[] {
    return Array.from({ length: size }, () => this.#one(this.#theirs));
  }

  /**
   * Which members run another program from now on, so that some, but not all, are ours.
   * @param now the programs of the members. @param isFirst of a cluster that was just founded
   */
  changes(now: readonly Program[], isFirst: boolean): Map<number, Program> {
    const indexes = [...now.keys()];
    if (isFirst) {
      const ours = 1 + this.#random.below(now.length - 1);
      for (let i = now.length - 1; i > 0; i--) {
        const j = this.#random.below(i + 1);
        [indexes[i], indexes[j]] = [indexes[j]!, indexes[i]!];
      }
      return new Map(indexes.slice(0, ours).map((index) => [index, this.#ours]));
    }
    const choices = indexes.flatMap((index) => {
      const others = now.filter((_, at) => at !== index).map(({ name }) => name);
      const ours = others.every((name) => name === "quorate") ? [] : [this.#ours];
      const theirs = others.includes("quorate") ? this.#theirs : [];
      return [...ours, ...theirs.filter(({ name }) => mayJoin(name, others))].map(
        (program) => [index, program] as const,
      );
    });
    return new Map(choices.length === 0 ? [] : [this.#one(choices)]);
  }

  #one<T>(choices: readonly T[]): T {
    return choices[this.#random.below(choices.length)]!;
  }
}

/**
 * A cluster's version is that of its oldest member, ours counting as 3.7. It rises when that one is
 * gone, and then an older one cannot join.
 */
function mayJoin(name: Program["name"], others: readonly Program["name"][]): boolean {
  const releases = others.map((one) => (one === "quorate" ? "3.7" : one));
  return releases.some((release) => release <= name);
}

const as35 = (flag: string): string =>
  flag.replace("--snapshot-catchup-entries", "--experimental-snapshot-catchup-entries");

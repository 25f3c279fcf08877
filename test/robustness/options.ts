/** The command line of the harness: each option once, with its help. */
import { parseArgs } from "node:util";
import { PLANTS, type Plant } from "./workload.ts";

interface Option {
  readonly value: string;
  readonly initial: string;
  readonly doc: string;
}

const OPTIONS = {
  minutes: {
    value: "N",
    initial: "30",
    doc: "hurt the cluster for so long, in rounds (may be a fraction)",
  },
  seed: {
    value: "N",
    initial: "",
    doc: "the seed of all choices; printed; by default a new one each time",
  },
  members: { value: "N", initial: "3", doc: "members of the cluster, 3 to 7" },
  clients: { value: "N", initial: "10", doc: "clients that read and write" },
  "lease-owners": { value: "N", initial: "4", doc: "clients that take leases and keep them alive" },
  watchers: { value: "N", initial: "4", doc: "watches; every second one sees all keys" },
  "think-ms": { value: "MS", initial: "25", doc: "mean pause of a client between two operations" },
  "call-limit-ms": { value: "MS", initial: "3000", doc: "how long a client waits for an answer" },
  "round-seconds": {
    value: "S",
    initial: "60",
    doc: "how long each round hurts the cluster before it heals",
  },
  "fault-every-ms": { value: "MS", initial: "2000", doc: "mean time between two faults" },
  "max-pause-seconds": { value: "S", initial: "15", doc: "the longest SIGSTOP" },
  "heal-limit-seconds": {
    value: "S",
    initial: "60",
    doc: "how long each demand after the heal may take",
  },
  dir: {
    value: "DIR",
    initial: "",
    doc: "where data, logs and histories go; by default a new directory under the temporary one",
  },
  check: {
    value: "FILE",
    initial: "",
    doc: "judge that history again, draw what fails beside it, and do nothing else",
  },
  plant: {
    value: "KIND",
    initial: "",
    doc: `break the harness on purpose, to see that it says so: ${PLANTS.join(", ")}`,
  },
} as const satisfies Record<string, Option>;

const SWITCHES = {
  keep: "keep data, logs and histories also when all promises held",
  help: "print this and end",
} as const;

/** What a run is to do. */
export interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly members: number;
  readonly clients: number;
  readonly leaseOwners: number;
  readonly watchers: number;
  readonly thinkMs: number;
  readonly callLimitMs: number;
  readonly roundMs: number;
  readonly faultEveryMs: number;
  readonly maxPauseMs: number;
  readonly healLimitMs: number;
  readonly dir: string | undefined;
  readonly check: string | undefined;
  readonly plant: Plant | undefined;
  readonly keep: boolean;
}

/** The text of --help. */
export function helpText(): string {
  const rows = Object.entries(OPTIONS).map(([name, { value, initial, doc }]) => [
    `--${name} ${value}`,
    initial === "" ? doc : `${doc} (${initial})`,
  ]);
  const switches = Object.entries(SWITCHES).map(([name, doc]) => [`--${name}`, doc]);
  return `npm run robustness -- [options]

Runs a cluster of real processes over TLS, whose members reach each other only through proxies, and hurts it: links that are cut, lose,
stall, delay and throttle; kill -9 of one and of all; SIGSTOP; slow and full disks. Clients read, write, take leases and watch meanwhile.
After each round all is healed, progress is demanded, and the recorded history is judged by the simulator's judges. Ends with 1 if a
promise was broken, and names the files that show it. Linux only.

${[...rows, ...switches].map(([left, right]) => `  ${left!.padEnd(24)} ${right}`).join("\n")}
`;
}

/**
 * Reads the command line; undefined if help is wanted. Throws with what is wrong and what would be
 * right.
 */
export function readOptions(args: readonly string[]): Options | undefined {
  const known = {
    ...Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, { type: "string" as const }])),
    ...Object.fromEntries(
      Object.keys(SWITCHES).map((name) => [name, { type: "boolean" as const }]),
    ),
  };
  const { values } = parseArgs({ args: [...args], options: known, strict: true });
  if (values["help"] === true) return undefined;
  const text = (name: keyof typeof OPTIONS): string =>
    (values[name] as string | undefined) ?? OPTIONS[name].initial;
  const number = (
    name: keyof typeof OPTIONS,
    lowest: number,
    highest: number,
    isWhole = true,
  ): number => {
    const given = text(name);
    const value = Number(given);
    if (
      given.trim() === "" ||
      !(value >= lowest && value <= highest) ||
      (isWhole && !Number.isInteger(value))
    ) {
      throw new Error(
        `--${name} ${given}: ${isWhole ? "a whole number" : "a number"} from ${lowest} to ${highest} is needed`,
      );
    }
    return value;
  };
  const plant = text("plant");
  if (plant !== "" && !PLANTS.includes(plant as Plant))
    throw new Error(`--plant ${plant}: one of ${PLANTS.join(", ")} is needed`);
  return {
    minutes: number("minutes", 0.1, 100_000, false),
    seed:
      text("seed") === ""
        ? 1 + Math.floor(Math.random() * 1_000_000)
        : number("seed", 0, Number.MAX_SAFE_INTEGER),
    members: number("members", 3, 7),
    clients: number("clients", 1, 200),
    leaseOwners: number("lease-owners", 0, 100),
    watchers: number("watchers", 1, 100),
    thinkMs: number("think-ms", 0, 60_000, false),
    callLimitMs: number("call-limit-ms", 100, 60_000),
    roundMs: number("round-seconds", 5, 3600) * 1000,
    faultEveryMs: number("fault-every-ms", 100, 600_000),
    maxPauseMs: number("max-pause-seconds", 1, 600) * 1000,
    healLimitMs: number("heal-limit-seconds", 5, 3600) * 1000,
    dir: text("dir") || undefined,
    check: text("check") || undefined,
    plant: plant === "" ? undefined : (plant as Plant),
    keep: values["keep"] === true,
  };
}

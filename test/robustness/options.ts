/** The command line of the harness: each option once, with its help. */
import { Values } from "../support/command-line.ts";
import { PLANTS, type Plant } from "./workload.ts";

const DECLARED = {
  options: {
    minutes: {
      value: "N",
      initial: "30",
      doc: "duration of the run, in rounds; may be a fraction",
    },
    seed: {
      value: "N",
      initial: "",
      doc: "the seed of all choices; printed; by default a new one each time",
    },
    members: { value: "N", initial: "3", doc: "members of the cluster, 3 to 7" },
    clients: { value: "N", initial: "10", doc: "clients that read and write" },
    "lease-owners": {
      value: "N",
      initial: "4",
      doc: "clients that take leases and keep them alive",
    },
    "lock-owners": { value: "N", initial: "3", doc: "clients that take locks" },
    watchers: { value: "N", initial: "4", doc: "watches; every second one sees all keys" },
    "think-ms": {
      value: "MS",
      initial: "25",
      doc: "mean pause of a client between two operations",
    },
    "call-limit-ms": {
      value: "MS",
      initial: "3000",
      doc: "how long a client waits for a response",
    },
    "round-seconds": {
      value: "S",
      initial: "60",
      doc: "duration of the faults in a round",
    },
    "fault-every-ms": { value: "MS", initial: "2000", doc: "mean time between two faults" },
    "max-pause-seconds": { value: "S", initial: "15", doc: "the longest SIGSTOP" },
    "heal-limit-seconds": {
      value: "S",
      initial: "60",
      doc: "limit of each demand after the faults",
    },
    dir: {
      value: "DIR",
      initial: "",
      doc: "where data, logs and histories go; by default a new directory under the temporary one",
    },
    check: {
      value: "FILE",
      initial: "",
      doc: "only judge that history again, and draw what fails beside it",
    },
    plant: {
      value: "KIND",
      initial: "",
      doc: `plant a bug in the harness, which must be reported: ${PLANTS.join(", ")}`,
    },
  },
  switches: {
    mixed:
      "members of etcd 3.5, 3.6 and 3.7 beside ours, in drawn proportion; users are switched on",
    keep: "keep data, logs and histories even if all promises held",
  },
} as const;

const usage = `./dev robustness [OPTIONS]

Runs a cluster of real processes over TLS under faults. Members reach each other only through
proxies. Faults: links that are cut, lose, stall, delay and throttle; kill -9 of one and of all;
SIGSTOP; slow and full disks; other leaders, and learners that never come. Meanwhile clients read,
write, take leases and locks, and watch. After each round all is healed, progress is demanded, and
the simulator's judges check the recorded history. Ends with 1 if a promise was broken, and prints
the files that show it. Linux only.`;

/** What a run is to do. */
export interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly members: number;
  readonly clients: number;
  readonly leaseOwners: number;
  readonly lockOwners: number;
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
  /** Whether members of etcd are among the members. */
  readonly mixed: boolean;
  readonly keep: boolean;
}

/**
 * Reads the command line; ends the process for --help and for an unknown option. Throws
 * Error for a value that is not in its range.
 */
export function readOptions(args: readonly string[]): Options {
  const values = new Values(usage, DECLARED, args);
  const plant = values.text("plant");
  if (plant !== "" && !PLANTS.includes(plant as Plant))
    throw new Error(`--plant ${plant}: one of ${PLANTS.join(", ")} is needed`);
  return {
    minutes: values.number("minutes", 0.1, 100_000, false),
    seed: values.seed("seed"),
    members: values.number("members", 3, 7),
    clients: values.number("clients", 1, 200),
    leaseOwners: values.number("lease-owners", 0, 100),
    lockOwners: values.number("lock-owners", 0, 100),
    watchers: values.number("watchers", 1, 100),
    thinkMs: values.number("think-ms", 0, 60_000, false),
    callLimitMs: values.number("call-limit-ms", 100, 60_000),
    roundMs: values.number("round-seconds", 5, 3600) * 1000,
    faultEveryMs: values.number("fault-every-ms", 100, 600_000),
    maxPauseMs: values.number("max-pause-seconds", 1, 600) * 1000,
    healLimitMs: values.number("heal-limit-seconds", 5, 3600) * 1000,
    dir: values.text("dir") || undefined,
    check: values.text("check") || undefined,
    plant: plant === "" ? undefined : (plant as Plant),
    mixed: values.isSet("mixed"),
    keep: values.isSet("keep"),
  };
}

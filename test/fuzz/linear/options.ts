/** The command line of the attack with superlinear inputs: each option once, with its help. */
import { Values } from "../../support/command-line.ts";
import type { Protocol } from "./wire.ts";

const N = "N";
const DECLARED = {
  options: {
    minutes: { value: N, initial: "10", doc: "duration of the run; may be a fraction" },
    seed: { value: N, initial: "1", doc: "the seed of all choices" },
    from: { value: N, initial: "0", doc: "the case to begin with, to go on with a run" },
    cases: { value: N, initial: "0", doc: "cases after which the run ends (0: none)" },
    block: { value: N, initial: "6000", doc: "cases that are sorted by port and sent together" },
    only: { value: "TEXT", initial: "", doc: "requests whose port and name have this in them" },
    "limit-ms": { value: "MS", initial: "1", doc: "processor time that a KiB may cost" },
    "fresh-every": {
      value: N,
      initial: "60000",
      doc: "requests after which the servers begin again with empty directories",
    },
    "log-every-seconds": { value: "S", initial: "30", doc: "interval between lines of progress" },
  },
  switches: {},
} as const;

const usage = `./dev attack linear [OPTIONS]`;

/** What a run is to do. */
export interface AttackOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly from: number;
  readonly cases: number;
  readonly block: number;
  readonly only: string;
  readonly limitMsPerKib: number;
  readonly freshEvery: number;
  readonly logEveryMs: number;
  readonly protocols: readonly Protocol[];
}

/** Reads the command line; ends the process for --help. @throws Error for a value out of range */
export function readOptions(args: readonly string[]): AttackOptions {
  const values = new Values(usage, DECLARED, args);
  return {
    minutes: values.number("minutes", 0.01, 100_000, false),
    seed: values.seed("seed"),
    from: values.number("from", 0, 1e12),
    cases: values.number("cases", 0, 1e12),
    block: values.number("block", 1, 1e6),
    only: values.text("only"),
    limitMsPerKib: values.number("limit-ms", 0.001, 1000, false),
    freshEvery: values.number("fresh-every", 1, 1e9),
    logEveryMs: values.number("log-every-seconds", 0.1, 3600, false) * 1000,
    protocols: ["http/1.1", "h2"],
  };
}

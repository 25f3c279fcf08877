/** The command line of the fuzzer: each option once, with its help. */
import { Values } from "../support/command-line.ts";

const N = "N";
const DECLARED = {
  options: {
    minutes: { value: N, initial: "10", doc: "duration of the run; may be a fraction" },
    seed: {
      value: N,
      initial: "",
      doc: "the seed of all choices; printed; by default a new one each time",
    },
    "round-seconds": {
      value: "S",
      initial: "20",
      doc: "duration of a round, after which the members are compared",
    },
    callers: { value: N, initial: "12", doc: "clients that call at one time" },
    "peer-streams": {
      value: N,
      initial: "4",
      doc: "streams that act as a member, at one time",
    },
    "max-resident-mib": {
      value: N,
      initial: "1024",
      doc: "limit of a member's resident memory; more is a failure",
    },
    "heal-seconds": {
      value: "S",
      initial: "120",
      doc: "time for the cluster to serve after it was left alone; more on a machine with other work",
    },
    "log-every-seconds": {
      value: "S",
      initial: "30",
      doc: "interval between lines with the progress",
    },
  },
  switches: {
    tls: "mutual TLS for clients and peers",
    keep: "keep data and logs even if nothing was found",
  },
} as const;

const usage = `./dev fuzz cluster [OPTIONS]`;

/** What a run is to do. */
export interface FuzzOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly roundMs: number;
  readonly callers: number;
  readonly peerStreams: number;
  readonly maxResidentMib: number;
  readonly healMs: number;
  readonly logEveryMs: number;
  readonly tls: boolean;
  readonly keep: boolean;
}

/**
 * Reads the command line; ends the process for --help and for an unknown option. Throws
 * Error for a value that is not in its range.
 */
export function readOptions(args: readonly string[]): FuzzOptions {
  const values = new Values(usage, DECLARED, args);
  return {
    minutes: values.number("minutes", 0.01, 100_000, false),
    seed: values.seed("seed"),
    roundMs: values.number("round-seconds", 0.1, 3600, false) * 1000,
    callers: values.number("callers", 1, 1000),
    peerStreams: values.number("peer-streams", 1, 1000),
    maxResidentMib: values.number("max-resident-mib", 1, 1_000_000),
    healMs: values.number("heal-seconds", 1, 36_000, false) * 1000,
    logEveryMs: values.number("log-every-seconds", 0.1, 3600, false) * 1000,
    tls: values.isSet("tls"),
    keep: values.isSet("keep"),
  };
}

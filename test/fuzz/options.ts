/** The command line of the fuzzer: each option once, with its help. */
import { parseArgs } from "node:util";

const OPTIONS = {
  minutes: { initial: "10", doc: "how long, in minutes; may be a fraction" },
  seed: {
    initial: "",
    doc: "the seed of all choices; printed; by default a new one each time",
  },
  "round-seconds": {
    initial: "20",
    doc: "how long each round sends, before the members are compared",
  },
  callers: { initial: "12", doc: "clients that call at one time" },
  "peer-streams": { initial: "4", doc: "streams that speak in a member's name at one time" },
  "max-resident-mib": {
    initial: "1024",
    doc: "more memory than this, resident in one member, is a failure",
  },
  "log-every-seconds": { initial: "30", doc: "interval between lines with the progress" },
} as const;

const SWITCHES = {
  tls: "mutual TLS for clients and peers",
  keep: "keep data and logs also when nothing was found",
  help: "print this and end",
} as const;

/** What a run is to do. */
export interface FuzzOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly roundMs: number;
  readonly callers: number;
  readonly peerStreams: number;
  readonly maxResidentMib: number;
  readonly logEveryMs: number;
  readonly tls: boolean;
  readonly keep: boolean;
}

/** The text of --help. */
export function helpText(): string {
  const rows = [
    ...Object.entries(OPTIONS).map(([name, { initial, doc }]) => [
      `--${name} N`,
      initial === "" ? doc : `${doc} (${initial})`,
    ]),
    ...Object.entries(SWITCHES).map(([name, doc]) => [`--${name}`, doc]),
  ];
  const width = Math.max(...rows.map(([name]) => name!.length)) + 2;
  return [
    "Usage: npm run fuzz:cluster -- [options]",
    "",
    ...rows.map(([name, doc]) => `  ${name!.padEnd(width)}${doc}`),
  ].join("\n");
}

/**
 * Reads the command line; undefined where help is asked for. Throws Error for what is no option or
 * no number.
 */
export function readOptions(args: readonly string[]): FuzzOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    options: {
      ...Object.fromEntries(
        Object.keys(OPTIONS).map((name) => [name, { type: "string" as const }]),
      ),
      ...Object.fromEntries(
        Object.keys(SWITCHES).map((name) => [name, { type: "boolean" as const }]),
      ),
    },
  });
  if (values["help"] === true) return undefined;
  const number = (name: keyof typeof OPTIONS): number => {
    const text = (values[name] as string | undefined) ?? OPTIONS[name].initial;
    const value =
      name === "seed" && text === "" ? 1 + Math.floor(Math.random() * 0x7fff_fffe) : Number(text);
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not ${text}`);
    return value;
  };
  return {
    minutes: number("minutes"),
    seed: number("seed"),
    roundMs: number("round-seconds") * 1000,
    callers: number("callers"),
    peerStreams: number("peer-streams"),
    maxResidentMib: number("max-resident-mib"),
    logEveryMs: number("log-every-seconds") * 1000,
    tls: values["tls"] === true,
    keep: values["keep"] === true,
  };
}

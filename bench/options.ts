/** The command line of ./dev bench. */
import { readArguments, switchOption, valueOption } from "../scripts/dev/command-line.ts";

const usage = `./dev bench [ROW...] [OPTIONS]: rows of requests, ours and etcd's in turn

Runs the rows whose names contain one of the words, such as "put random" or "many keys"; all without a
word.`;

export interface BenchOptions {
  readonly list: boolean;
  readonly from: string | undefined;
  readonly rows: readonly string[];
  readonly sizes: readonly number[];
  readonly tls: readonly boolean[];
  readonly only: string | undefined;
  /** Path of the member; undefined: this repository's. */
  readonly quorate: string | undefined;
  /** Paths of etcd and of its benchmark tool; undefined: from the environment. */
  readonly etcd: string | undefined;
  readonly benchmark: string | undefined;
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpMs: number;
  readonly keys: number;
  readonly valueBytes: number;
  readonly listedKeys: number;
  readonly manyKeys: number;
  readonly idleSeconds: number;
  /** Calls of each row with etcd's benchmark tool. */
  readonly goPuts: number;
  readonly markdown: boolean;
  readonly json: string | undefined;
}

/** Throws where a value makes no sense. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = readArguments(
    usage,
    {
      quick: switchOption(
        "every row in one short round, about six minutes; the other options still count",
      ),
      list: switchOption("names the rows"),
      size: valueOption("1 or 3 members alone"),
      plain: switchOption("plain connections alone"),
      tls: switchOption("mutual TLS for clients and peers alone"),
      only: valueOption("quorate or etcd alone"),
      quorate: valueOption(
        "the member to measure, such as bin/quorate of an unpacked release (default: that of this repository)",
      ),
      etcd: valueOption(
        "the etcd to compare with (default: the one on the PATH); its version is printed",
      ),
      benchmark: valueOption(
        `etcd's benchmark tool for the rows "by Go's clientv3" (default: $ETCD_BENCHMARK, then the PATH)`,
      ),
      rounds: valueOption("rounds (default: 3); the programs take turns to go first"),
      seconds: valueOption(
        "measured seconds of each load (default: 3; quick: 1), after 2 s of warm-up (quick: 0.5 s)",
      ),
      keys: valueOption("keys of 8 bytes (default: 10000)"),
      "value-bytes": valueOption("bytes of each value (default: 256)"),
      "many-keys": valueOption(
        'puts of the rows "many keys" and "many revisions" (default: 1000000; quick: 200000)',
      ),
      markdown: switchOption(
        "the report with its conditions, for docs/internals/benchmarks.md (progress: standard error)",
      ),
      json: valueOption("also write every measurement to a file, as it goes"),
      from: valueOption("run nothing: the report of measurements from such a file"),
    },
    "ROW",
    args,
  );
  const { quick } = values;
  const number = (
    name: "rounds" | "seconds" | "keys" | "value-bytes" | "many-keys" | "size",
    fallback: number,
  ): number => {
    const value = values[name] === undefined ? fallback : Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not "${values[name]}"`);
    return value;
  };
  if (values.only !== undefined && values.only !== "quorate" && values.only !== "etcd") {
    throw new Error(`--only is quorate or etcd, not "${values.only}"`);
  }
  return {
    list: values.list,
    from: values.from,
    rows: positionals,
    sizes: values.size === undefined ? [1, 3] : [number("size", 1)],
    tls: values.plain === values.tls ? [false, true] : [values.tls],
    only: values.only,
    quorate: values.quorate,
    etcd: values.etcd,
    benchmark: values.benchmark,
    rounds: number("rounds", quick ? 1 : 3),
    seconds: number("seconds", quick ? 1 : 3),
    warmUpMs: quick ? 500 : 2000,
    keys: number("keys", 10_000),
    valueBytes: number("value-bytes", 256),
    listedKeys: 10_000,
    manyKeys: number("many-keys", quick ? 200_000 : 1_000_000),
    idleSeconds: quick ? 5 : 60,
    goPuts: quick ? 10_000 : 50_000,
    markdown: values.markdown,
    json: values.json,
  };
}

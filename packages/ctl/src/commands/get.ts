import type { CommandBody, CommandLine, Flags, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode, intFlag, textFlag } from "@quorate/cli";
import type { Client, GetOptions } from "@quorate/client";
import { fromUtf8, KeyValue, KVService, quoteBytes, type RangeResponse } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { rangeForm } from "../printers/kv-forms.ts";
import { consistencyFlag, isSerializable } from "./consistency.ts";

export const getFlags: Flags = {
  consistency: consistencyFlag,
  order: textFlag("sort order: ASCEND or DESCEND", "", { values: ["ASCEND", "DESCEND"] }),
  "sort-by": textFlag("sort target: CREATE, KEY, MODIFY, VALUE or VERSION", "", {
    values: ["CREATE", "KEY", "MODIFY", "VALUE", "VERSION"],
  }),
  limit: intFlag("most keys to return (0 for all)"),
  prefix: boolFlag("all keys with the key as prefix"),
  "from-key": boolFlag("all keys at or after the key, in byte order"),
  rev: intFlag("revision to read at (0 for the latest)"),
  "keys-only": boolFlag("print keys without values"),
  "count-only": boolFlag("print only the number of keys (needs --write-out=fields)"),
  "print-value-only": boolFlag("print values without keys (needs --write-out=simple)"),
  "min-create-rev": intFlag("lowest create revision"),
  "max-create-rev": intFlag("highest create revision"),
  "min-mod-rev": intFlag("lowest mod revision"),
  "max-mod-rev": intFlag("highest mod revision"),
  stream: boolFlag(
    "read the range in parts (RPC RangeStream), without a limit on the response's size",
  ),
};

const orders: Readonly<Record<string, GetOptions["order"]>> = {
  ASCEND: "ascend",
  DESCEND: "descend",
  "": undefined,
};
const targets: Readonly<Record<string, GetOptions["sortBy"]>> = {
  CREATE: "create",
  KEY: "key",
  MODIFY: "mod",
  VALUE: "value",
  VERSION: "version",
  "": undefined,
};

/** The key and the options of a command line. Throws Exit. */
export function readGet({ args, flags }: Pick<CommandLine, "args" | "flags">): {
  key: string;
  options: GetOptions;
} {
  const [key, rangeEnd] = args;
  if (key === undefined)
    throw badArguments(
      "get command needs one argument as key and an optional argument as range_end",
    );
  const prefix = flags.bool("prefix");
  const fromKey = flags.bool("from-key");
  const keysOnly = flags.bool("keys-only");
  const countOnly = flags.bool("count-only");
  checkRange(prefix, fromKey, rangeEnd);
  if (keysOnly && countOnly)
    throw badArguments(
      "`--keys-only` and `--count-only` cannot be set at the same time, choose one",
    );
  const serializable = isSerializable(flags);
  const order = flags.string("order").toUpperCase();
  if (!(order in orders))
    throw new Exit(ExitCode.badFeature, `bad sort order ${flags.string("order")}`);
  const target = flags.string("sort-by").toUpperCase();
  if (!(target in targets))
    throw new Exit(ExitCode.badFeature, `bad sort target ${flags.string("sort-by")}`);
  for (const what of ["Create", "Mod"]) {
    const [min, max] = ["min", "max"].map((end) =>
      flags.int(`${end}-${what.toLowerCase()}-rev`),
    ) as [number, number];
    if (max > 0 && min > max)
      throw new Exit(ExitCode.badFeature, `getMin${what}Rev(=${min}) > getMax${what}Rev(=${max})`);
  }
  const options: GetOptions = {
    prefix,
    fromKey,
    ...(rangeEnd === undefined ? {} : { rangeEnd }),
    limit: flags.int("limit"),
    revision: Math.max(flags.int("rev"), 0),
    ...(orders[order] === undefined ? {} : { order: orders[order] }),
    ...(targets[target] === undefined ? {} : { sortBy: targets[target] }),
    serializable,
    keysOnly,
    countOnly,
    minCreateRevision: flags.int("min-create-rev"),
    maxCreateRevision: flags.int("max-create-rev"),
    minModRevision: flags.int("min-mod-rev"),
    maxModRevision: flags.int("max-mod-rev"),
  };
  return { key, options };
}

/** Throws Exit where more than one of --prefix, --from-key and a range end is set. */
export function checkRange(prefix: boolean, fromKey: boolean, rangeEnd: string | undefined): void {
  if (prefix && fromKey)
    throw badArguments("`--prefix` and `--from-key` cannot be set at the same time, choose one");
  if (rangeEnd !== undefined && (prefix || fromKey)) {
    throw badArguments(
      "too many arguments, only accept one argument when `--prefix` or `--from-key` is set",
    );
  }
}

/** The Range response for one key. Rejects with ClientError. */
export function getRecord(client: Client, key: string): Promise<RangeResponse> {
  return client.call(KVService.methods.Range, { key: fromUtf8(key) }, true);
}

/** Prints values of Kubernetes as YAML, each behind its key as a comment. */
async function printDecoded({ flags, io }: Invocation, { kvs }: RangeResponse): Promise<void> {
  const { kubernetesDocument } = await import("../dump/kubernetes.ts");
  const valueOnly = flags.bool("print-value-only");
  for (const [at, record] of kvs.entries()) {
    const heading = valueOnly ? "" : quoteBytes(KeyValue.decode(record).key);
    const text = await kubernetesDocument(record, heading);
    io.stdout(at === 0 ? text : `---\n${text}`);
  }
}

export const getCommand: CommandBody = {
  flags: {
    ...getFlags,
    decode: textFlag(
      "show values decoded; k8s: objects of Kubernetes, as YAML (needs --write-out=simple)",
      "",
      { values: ["k8s"] },
    ),
  },
  async run(invocation) {
    const { key, options } = readGet(invocation);
    const valueOnly = invocation.flags.bool("print-value-only");
    const printer = printerOf(invocation, { valueOnly });
    if (options.countOnly === true && printer.format !== "fields") {
      throw badArguments("--count-only is only for `--write-out=fields`");
    }
    if (valueOnly && printer.format !== "simple") {
      throw badArguments("print-value-only is only for `--write-out=simple`");
    }
    const decode = invocation.flags.string("decode");
    if (decode !== "" && decode !== "k8s")
      throw badArguments(`--decode is ${JSON.stringify(decode)}, not k8s`);
    if (decode !== "" && (printer.format !== "simple" || options.keysOnly === true))
      throw badArguments("--decode is only for `--write-out=simple`, and not for `--keys-only`");
    const response = await withClient(invocation, ({ client, methods, build }) => {
      const request = build.getRequest(key, options);
      if (!invocation.flags.bool("stream")) return client.call(methods.range, request, true);
      const timeoutMs = invocation.flags.durationMs("command-timeout");
      return build.streamedRange(client, request, { timeoutMs });
    });
    if (decode === "") printer.form(rangeForm, response);
    else await printDecoded(invocation, response);
  },
};

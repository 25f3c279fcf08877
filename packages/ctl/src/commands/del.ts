import type { DeleteOptions } from "@quorate/client";
import { fromUtf8 } from "@quorate/proto";
import type { Flags } from "../flags.ts";
import { withClient } from "../globals.ts";
import { goQuote } from "../go-format.ts";
import { Exit, ExitCode } from "../io.ts";
import { printerOf } from "../printers/choose.ts";
import type { Command, CommandLine } from "../program.ts";
import { checkRange } from "./get.ts";

export const delFlags: Flags = {
  prefix: { kind: "bool", defaultText: "false", doc: "all keys that begin with the key" },
  "prev-kv": { kind: "bool", defaultText: "false", doc: "print what was deleted" },
  "from-key": {
    kind: "bool",
    defaultText: "false",
    doc: "all keys from the key on, compared as bytes",
  },
  range: {
    kind: "bool",
    defaultText: "false",
    doc: "do not wait before deleting a range given by two keys",
  },
};

/** Time to think again before a range of keys is gone. */
const RANGE_WARNING_MS = 2000;

/**
 * The key and the options that a command line means. A range of two keys without --range is warned
 * of, with a pause. Throws Exit.
 */
export async function readDel({
  args,
  flags,
  io,
}: CommandLine): Promise<{ key: string; options: DeleteOptions }> {
  const [key, rangeEnd] = args;
  if (key === undefined || args.length > 2) {
    throw new Exit(
      ExitCode.badArguments,
      "del command needs one argument as key and an optional argument as range_end",
    );
  }
  const prefix = flags.bool("prefix");
  const fromKey = flags.bool("from-key");
  checkRange(prefix, fromKey, rangeEnd);
  if (rangeEnd !== undefined && !flags.bool("range")) {
    const [from, to] = [key, rangeEnd].map((text) => goQuote(fromUtf8(text)));
    io.stderr(
      `Warning: Keys between ${from} and ${to} will be deleted. Please interrupt the command within next 2 seconds to cancel. ` +
        "You can provide `--range` flag to avoid the delay.\n",
    );
    await io.sleep(RANGE_WARNING_MS);
  }
  return {
    key,
    options: {
      prefix,
      fromKey,
      prevKv: flags.bool("prev-kv"),
      ...(rangeEnd === undefined ? {} : { rangeEnd }),
    },
  };
}

export const delCommand: Command = {
  use: "del [options] <key> [range_end]",
  short: "Deletes a key or a range of keys, range_end not included",
  flags: delFlags,
  async run(invocation) {
    const { key, options } = await readDel(invocation);
    const printer = printerOf(invocation);
    printer.del(
      await withClient(invocation, ({ client, methods, build }) =>
        client.call(methods.deleteRange, build.deleteRequest(key, options), false),
      ),
    );
  },
};

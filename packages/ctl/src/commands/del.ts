import type { CommandBody, CommandLine, Flags } from "@quorate/cli";
import { badArguments, boolFlag } from "@quorate/cli";
import type { DeleteOptions } from "@quorate/client";
import { fromUtf8, quoteBytes } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { deleteForm } from "../printers/kv-forms.ts";
import { checkRange } from "./get.ts";

export const delFlags: Flags = {
  prefix: boolFlag("all keys with the key as prefix"),
  "prev-kv": boolFlag("print the deleted records"),
  "from-key": boolFlag("all keys at or after the key, in byte order"),
  range: boolFlag("delete a range of two keys without the pause"),
};

/** The pause before a range of keys is deleted, as in etcdctl. */
const RANGE_WARNING_MS = 2000;

/**
 * The key and the options of a command line. A range of two keys without --range causes a warning
 * and a pause. Throws Exit.
 */
export async function readDel({
  args,
  flags,
  io,
}: CommandLine): Promise<{ key: string; options: DeleteOptions }> {
  const [key, rangeEnd] = args;
  if (key === undefined || args.length > 2) {
    throw badArguments(
      "del command needs one argument as key and an optional argument as range_end",
    );
  }
  const prefix = flags.bool("prefix");
  const fromKey = flags.bool("from-key");
  checkRange(prefix, fromKey, rangeEnd);
  if (rangeEnd !== undefined && !flags.bool("range")) {
    const [from, to] = [key, rangeEnd].map((text) => quoteBytes(fromUtf8(text)));
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

export const delCommand: CommandBody = {
  flags: delFlags,
  async run(invocation) {
    const { key, options } = await readDel(invocation);
    const printer = printerOf(invocation);
    printer.form(
      deleteForm,
      await withClient(invocation, ({ client, methods, build }) =>
        client.call(methods.deleteRange, build.deleteRequest(key, options), false),
      ),
    );
  },
};

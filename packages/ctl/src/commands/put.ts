import type { CommandBody, CommandLine } from "@quorate/cli";
import { badArguments, boolFlag, type Flags, parseBigInt64, readAll, textFlag } from "@quorate/cli";
import type { PutOptions } from "@quorate/client";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { putForm } from "../printers/kv-forms.ts";

export const putFlags: Flags = {
  lease: textFlag("lease to attach the key to, in hexadecimal", "0"),
  "prev-kv": boolFlag("print the previous record"),
  "ignore-value": boolFlag("keep the key's current value"),
  "ignore-lease": boolFlag("keep the key's current lease"),
};

const USAGE = "put command needs 1 argument and input from stdin or 2 arguments";

/**
 * The key, value and options of a command line; a missing value is read from standard input. Throws
 * Exit.
 */
export async function readPut({
  args,
  flags,
  io,
}: CommandLine): Promise<{ key: string; value: string | Uint8Array; options: PutOptions }> {
  const [key] = args;
  if (key === undefined) throw badArguments(USAGE);
  const ignoreValue = flags.bool("ignore-value");
  if (ignoreValue && args.length > 1)
    throw badArguments("put command needs only 1 argument when 'ignore-value' is set");
  let value: string | Uint8Array = "";
  if (!ignoreValue) {
    value = args[1] ?? (await readAll(io));
    if (args.length < 2 && value.length === 0) throw badArguments(USAGE);
  }
  let lease: bigint;
  try {
    lease = parseBigInt64(flags.string("lease"), 16);
  } catch (error) {
    throw badArguments(`bad lease ID (${(error as Error).message}), expecting ID in Hex`);
  }
  return {
    key,
    value,
    options: {
      lease,
      ignoreValue,
      prevKv: flags.bool("prev-kv"),
      ignoreLease: flags.bool("ignore-lease"),
    },
  };
}

export const putCommand: CommandBody = {
  long: `Puts a key and its value into the store.

Without a value argument the value is read from standard input:
  cat file | quoratectl put <key>
Write "--" before a key or value that begins with a dash:
  quoratectl put <key> -- <value>`,
  flags: putFlags,
  async run(invocation) {
    const { key, value, options } = await readPut(invocation);
    const printer = printerOf(invocation);
    printer.form(
      putForm,
      await withClient(invocation, ({ client, methods, build }) =>
        client.call(methods.put, build.putRequest(key, value, options), false),
      ),
    );
  },
};

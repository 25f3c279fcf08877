import type { CommandBody } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode, parseBigInt64, toSafeNumber } from "@quorate/cli";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";

export const compactionCommand: CommandBody = {
  flags: {
    physical: boolFlag("wait until the store has removed the old revisions"),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [text] = args;
    if (text === undefined || args.length > 1)
      throw badArguments("compaction command needs 1 argument");
    let revision: bigint;
    try {
      revision = parseBigInt64(text, 10);
    } catch (error) {
      throw new Exit(ExitCode.error, (error as Error).message);
    }
    // Refuses an unknown output format, although the response is printed in one way only.
    printerOf(invocation);
    await withClient(invocation, ({ client }) =>
      client.compact(toSafeNumber(revision), { physical: flags.bool("physical") }),
    );
    io.stdout(`compacted revision ${revision}\n`);
  },
};

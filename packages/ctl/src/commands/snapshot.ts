import type { Command, CommandBody } from "@quorate/cli";
import { badArguments, Exit, ExitCode } from "@quorate/cli";
import { asExit } from "../connect/failed-call.ts";
import { clientOf, endpointsOf } from "../connect/globals.ts";
import { saveSnapshot } from "../connect/save-snapshot.ts";

const saveCommand: Command = {
  use: "save <filename>",
  short: "Saves the whole store of one member to a file",
  long: `Saves the whole store of one member to a file, from which etcdctl, etcdutl and quorateutl restore.

The file appears once it is complete and durable; until then its name is <filename>.part.
--command-timeout applies only if set.`,
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [path] = args;
    if (path === undefined || args.length > 1)
      throw badArguments("snapshot save expects one argument <filename>");
    const endpoints = await endpointsOf(invocation);
    if (endpoints.length !== 1) {
      throw new Exit(
        ExitCode.interrupted,
        `snapshot must be requested to one selected node, not multiple [${endpoints.join(" ")}]`,
      );
    }
    const { client } = await clientOf(invocation, endpoints);
    const timer = flags.isSet("command-timeout")
      ? setTimeout(() => client.close(), flags.durationMs("command-timeout"))
      : undefined;
    try {
      const { version } = await saveSnapshot(client, path, io);
      io.stdout(
        `Snapshot saved at ${path}\n${version === "" ? "" : `Server version ${version}\n`}`,
      );
    } catch (error) {
      const exit = asExit(error, io);
      throw new Exit(ExitCode.interrupted, exit instanceof Error ? exit.message : String(exit));
    } finally {
      clearTimeout(timer);
      client.close();
    }
  },
};

export const snapshotCommand: CommandBody = {
  commands: [saveCommand],
};

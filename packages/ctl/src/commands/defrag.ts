import { clientOf, logIn } from "../globals.ts";
import { goDuration } from "../go-format.ts";
import { Exit, ExitCode } from "../io.ts";
import type { Command } from "../program.ts";
import { chosenEndpoints, reason } from "./endpoint.ts";

export const defragCommand: Command = {
  use: "defrag",
  short: "Has members rewrite their files, so that they give unused space back",
  long: `Has members rewrite their files, so that they give unused space back.

They are asked one after the other, and each serves meanwhile. A large store takes longer than the default --command-timeout.`,
  flags: {
    cluster: { kind: "bool", defaultText: "false", doc: "ask every member of the cluster" },
  },
  async run(invocation) {
    const { io } = invocation;
    let failures = 0;
    for (const endpoint of await chosenEndpoints(invocation)) {
      const { client } = await clientOf(invocation, [endpoint]);
      const startNs = io.nowNs();
      const took = () => goDuration(io.nowNs() - startNs);
      try {
        await logIn(client, io);
        await client.defragment(endpoint);
        io.stdout(`Finished defragmenting etcd member[${endpoint}]. took ${took()}\n`);
      } catch (error) {
        if (error instanceof Exit) throw error;
        failures++;
        io.stderr(
          `Failed to defragment etcd member[${endpoint}]. took ${took()}. (${reason(error, invocation)})\n`,
        );
      } finally {
        client.close();
      }
    }
    if (failures > 0) throw new Exit(ExitCode.error, "");
  },
};

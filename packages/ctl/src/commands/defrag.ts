import type { CommandBody } from "@quorate/cli";
import { boolFlag, Exit, ExitCode } from "@quorate/cli";
import { formatDurationNs } from "@quorate/host";
import { clientOf } from "../connect/globals.ts";
import { logIn } from "../connect/login.ts";
import { chosenEndpoints, reason } from "./endpoint.ts";

export const defragCommand: CommandBody = {
  long: `Defragments members: rewrites their files to release unused space.

Members run one after the other and serve requests meanwhile. A large store takes longer than the
default --command-timeout.`,
  flags: {
    cluster: boolFlag("use the endpoints of all members of the cluster"),
  },
  async run(invocation) {
    const { io } = invocation;
    let failures = 0;
    for (const endpoint of await chosenEndpoints(invocation)) {
      const { client } = await clientOf(invocation, [endpoint]);
      const startNs = io.nowNs();
      const took = () => formatDurationNs(io.nowNs() - startNs);
      try {
        await logIn(client, io, "refusal");
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

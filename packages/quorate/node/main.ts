/**
 * The program `quorate`: runs a member, or what the first argument names. Removing a line here and
 * the package that it loads removes that program.
 */
import { main as runMember } from "@quorate/server/node";
import { endWithParent } from "./parent.ts";

/** What runs with the process's arguments, of which the first is its name. */
type Command = (args: string[]) => Promise<void>;

/** Commands by name. Each is loaded when it is asked for: a member needs none of them. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  gateway: async () => (await import("./run-command.ts")).runProxyCommand,
  "grpc-proxy": async () => (await import("./run-command.ts")).runProxyCommand,
  shadow: async () => (await import("@quorate/shadow/node")).runShadowCommand,
  envtest: async () => (await import("./run-command.ts")).runProxyCommand,
  operator: async () => (await import("@quorate/operator/node")).runOperatorCommand,
  apiserver: async () => (await import("@quorate/kube-apiserver/node")).runApiServerCommand,
};

/** Runs the program with this process's arguments. Called once, by bin/launch.js. */
export async function main(): Promise<void> {
  endWithParent(process.env);
  const args = process.argv.slice(2);
  const [name = ""] = args;
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) return runMember();
  const run = await load();
  await run(args);
}

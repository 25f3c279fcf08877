/**
 * The program `quorate`: runs a member, or with the first argument "gateway" or "grpc-proxy" a
 * proxy, or with "apiserver" an API server.
 */
import { main as runMember } from "@quorate/server/node";

/** Runs the program with this process's arguments. Called once, by bin/launch.js. */
export async function main(): Promise<void> {
  const [command] = process.argv.slice(2);
  if (command === "apiserver") {
    const { runApiServerCommand } = await import("@quorate/kube-apiserver/node");
    await runApiServerCommand(process.argv.slice(2));
    return;
  }
  if (command !== "gateway" && command !== "grpc-proxy") {
    await runMember();
    return;
  }
  // A member needs nothing of it.
  const { runProxyCommand } = await import("./run-command.ts");
  await runProxyCommand(process.argv.slice(2));
}

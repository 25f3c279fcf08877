/**
 * Where the programs are, and the commands to print for users: in the repository, or beside this
 * tool where it is installed.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** In a release this code lies in lib/, beside bin/. */
const released = join(import.meta.dirname, "../bin");
const repository = join(import.meta.dirname, "../..");

/** True where this is the installed quorate-cluster. */
export const isReleased: boolean = existsSync(join(released, "quorate-cluster"));

/** The command line that starts one of our programs; arguments follow. */
export function commandOf(name: "quorate" | "quoratectl" | "quorateutl"): string[] {
  return isReleased
    ? [join(released, name)]
    : [process.execPath, join(repository, `bin/${name}.js`)];
}

/** Where the local cluster keeps its files by default. */
export const defaultDir: string = isReleased
  ? join(homedir(), ".quorate")
  : join(repository, ".quorate");

/** How people call an action of this tool. */
export function callOf(action: "start" | "stop" | "restart" | "status" | "clean"): string {
  if (isReleased) return `quorate-cluster ${action}`;
  return `scripts/${action === "start" || action === "stop" ? `${action}-all` : action}.sh`;
}

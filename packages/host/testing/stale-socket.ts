/** The file of a unix socket whose server was killed, as a start finds it. */
import { spawnSync } from "node:child_process";

const SERVER =
  'require("node:net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))';

/** Leaves a socket at `path` on which no process listens. Throws where none can be made. */
export function leaveStaleSocket(path: string): void {
  const { signal, stderr } = spawnSync(process.execPath, ["-e", SERVER, path], {
    encoding: "utf8",
  });
  if (signal !== "SIGKILL") throw new Error(`no server for ${path}: ${stderr}`);
}

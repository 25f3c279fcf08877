/**
 * A process of a test ends with the test, however that ends: its parent's death is seen by the
 * parent's number, as its standard input is not the parent's.
 */
import { PARENT_VARIABLE } from "./envtest.ts";

const LOOK_MS = 250;
/** So many looks after SIGTERM it ends at once. */
const GRACE_LOOKS = 12;

/** Ends this process when the one that the environment names is its parent no more. */
export function endWithParent(env: NodeJS.ProcessEnv): void {
  const parent = Number(env[PARENT_VARIABLE]);
  delete env[PARENT_VARIABLE];
  if (!Number.isInteger(parent) || parent <= 1) return;
  let looks = 0;
  setInterval(() => {
    if (process.ppid === parent) return;
    if (looks++ === 0) process.kill(process.pid, "SIGTERM");
    else if (looks > GRACE_LOOKS) process.kill(process.pid, "SIGKILL");
  }, LOOK_MS).unref();
}

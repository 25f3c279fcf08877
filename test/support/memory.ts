/** How much memory is really in use. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/**
 * Bytes that are still held. What a collection lets go of is given back in the background, so it
 * takes a few.
 */
export async function heldBytes(): Promise<number> {
  for (let i = 0; i < 5; i++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

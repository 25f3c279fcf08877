/**
 * Loaded into a member's process before its own code (NODE_OPTIONS=--import): its wall clock is off
 * by as many milliseconds as the file that QUORATE_TEST_CLOCK_SHIFT names says at that moment. Its
 * monotonic clock is not touched.
 */
import { readFileSync } from "node:fs";

const path = process.env["QUORATE_TEST_CLOCK_SHIFT"];
/** The file is looked at again after so long. */
const LOOK_AGAIN_MS = 50;

let shiftMs = 0;
let readMs = Number.NEGATIVE_INFINITY;

function shift(): number {
  if (performance.now() - readMs > LOOK_AGAIN_MS && path !== undefined) {
    readMs = performance.now();
    const text = readFileSync(path, "utf8");
    // It is being written: what it said before holds for a little longer.
    if (text !== "") shiftMs = Number(text);
  }
  return shiftMs;
}

if (path !== undefined) {
  const realNow = Date.now;
  Date.now = () => realNow() + shift();
}

/**
 * Loaded before each test file (./dev test): ends the file's process when it has nothing left to
 * test and does not end by itself, as after a failed test that left a child or a connection behind.
 * Node's runner waits for such a process for ever, whatever --test-timeout says.
 */
import { afterEach, beforeEach } from "node:test";
import { isMainThread } from "node:worker_threads";

/**
 * What suites prepare and clean up outside of tests takes less: a cluster has two minutes to start.
 */
const PATIENCE_MS = 240_000;

if (
  isMainThread &&
  process.env["NODE_TEST_CONTEXT"] === "child-v8" &&
  process.argv[1]?.endsWith(".test.ts") === true
) {
  let running = 0;
  let idleSinceMs = performance.now();
  beforeEach(() => {
    running++;
  });
  afterEach(() => {
    running--;
    idleSinceMs = performance.now();
  });
  setInterval(() => {
    if (running > 0 || performance.now() - idleSinceMs < PATIENCE_MS) return;
    console.error(
      `${process.argv[1]} does not end: ${process.getActiveResourcesInfo().join(", ")}`,
    );
    process.exit(1);
  }, 5000).unref();
}

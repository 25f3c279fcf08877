/**
 * Clusters that no test has closed. Under node:test they are closed when all tests of the file have
 * ended; vitest, jest and bun end the process, and what is in memory with it.
 */
export const clusters: Set<{ close(): Promise<void> }> = new Set();

/** Whether this process runs tests of node:test, which is not to be loaded for others. */
function isNodeTest(): boolean {
  const { moduleLoadList = [] } = process as { moduleLoadList?: readonly string[] };
  return (
    process.env["NODE_TEST_CONTEXT"] !== undefined ||
    moduleLoadList.includes("NativeModule internal/test_runner/harness")
  );
}

// When this file is loaded, no test runs yet: the hook is that of the whole file.
if (isNodeTest())
  process.getBuiltinModule("node:test").after(async () => {
    await Promise.all([...clusters].map((cluster) => cluster.close()));
  });

/**
 * Clusters that no test has closed. They are closed when all tests of the file have ended, under
 * node:test and where there is a global `afterAll`, as in jest; vitest ends the process, and what is
 * in memory with it.
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

const end = async (): Promise<void> => {
  await Promise.all([...clusters].map((cluster) => cluster.close()));
};
const { afterAll } = globalThis as { afterAll?: (hook: () => Promise<void>) => void };

// When this file is loaded, no test runs yet: the hook is that of the whole file.
if (isNodeTest()) process.getBuiltinModule("node:test").after(end);
else afterAll?.(end);

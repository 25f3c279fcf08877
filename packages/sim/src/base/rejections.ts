/** Rejections that nobody handles, while a simulated world runs. */

/** What a process that has ended still waited for ends as it may; its errors say so. */
const OF_ENDED = /dead|closed|stopped/;

/** Calls `fail` for each while `run` goes on. */
export async function watchRejections<T>(
  fail: (error: unknown) => void,
  run: () => Promise<T>,
): Promise<T> {
  const onRejection = (error: unknown): void => {
    if (!OF_ENDED.test(String(error))) fail(error);
  };
  process.on("unhandledRejection", onRejection);
  try {
    return await run();
  } finally {
    process.off("unhandledRejection", onRejection);
  }
}

/**
 * A password in a file (--password-file), for programs that run for months: the file is read at
 * each login, so a new password counts without a restart. Where the file cannot be used, the last
 * good password stays, and a line on standard error says so.
 */
import { Exit, ExitCode, type Io } from "@quorate/cli";

/** A longer file holds something else than a password. */
export const MAX_PASSWORD_FILE_BYTES = 1024;

/** The password in a file, or what is wrong with it. */
function read(path: string, io: Io): string {
  const bytes = io.readFile(path);
  if (bytes.length > MAX_PASSWORD_FILE_BYTES)
    throw new Error(`it has more than ${MAX_PASSWORD_FILE_BYTES} bytes`);
  const text = Buffer.from(bytes)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  if (text === "") throw new Error("it is empty");
  if (text.includes("\n")) throw new Error("it has more than one line");
  return text;
}

/**
 * The password of a file, read now and at each call of the function.
 * @throws Exit if it cannot be read now
 */
export function passwordFile(path: string, io: Io): () => string {
  const problem = (error: unknown): string =>
    `cannot use the password in ${path}: ${(error as Error).message}`;
  let last: string;
  try {
    last = read(path, io);
  } catch (error) {
    throw new Exit(ExitCode.badArguments, problem(error));
  }
  return () => {
    try {
      last = read(path, io);
    } catch (error) {
      io.stderr(`Warning: ${problem(error)}; the one from before is used\n`);
    }
    return last;
  };
}

/**
 * Lines of a log on standard error, under the messages and fields of etcdutl's, which scripts wait
 * for.
 */
import type { Io } from "./io.ts";

/**
 * Writes a line: JSON where a program reads it, as etcdutl's are; words where somebody watches.
 * @param fields in the order in which they are shown
 */
export function logInfo(
  io: Io,
  msg: string,
  fields: Readonly<Record<string, string | number | boolean | readonly string[]>>,
): void {
  if (io.stderrIsTerminal) {
    const words = Object.entries(fields).map(
      ([name, value]) => `  ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    io.stderr(`${msg}${words.join("")}\n`);
  } else {
    io.stderr(
      `${JSON.stringify({ level: "info", ts: new Date().toISOString(), msg, ...fields })}\n`,
    );
  }
}

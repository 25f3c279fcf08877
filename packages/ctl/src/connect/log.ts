/**
 * Log lines on standard error, with the messages and fields of etcdutl, which scripts match.
 */
import type { Io } from "@quorate/cli";

/**
 * Writes a line: JSON as etcdutl's, or text on a terminal.
 * @param fields in the order of output
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

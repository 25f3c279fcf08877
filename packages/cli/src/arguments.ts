/**
 * Refuses arguments that are not UTF-8. Node decodes arguments and replaces invalid bytes by
 * U+FFFD, which would silently change a key. On Linux the original bytes are in /proc/self/cmdline.
 */
import { readFileSync } from "node:fs";

const ADVICE =
  'pass such a key to txn, in double quotes ("\\xff"), and such a value to put on standard input';

/**
 * The error for arguments that are not UTF-8, or undefined.
 * @param readBytes returns the command line as the system has it
 */
export function argumentTrouble(
  args: readonly string[],
  readBytes: () => Uint8Array = systemCommandLine,
): string | undefined {
  const suspect = args.findIndex((arg) => arg.includes("\ufffd"));
  if (suspect < 0) return undefined;
  let bytes: Uint8Array;
  try {
    bytes = readBytes();
  } catch {
    // Not Linux.
    return undefined;
  }
  // Node, its flags and the program's path come before the arguments.
  const raw = splitAtZeros(bytes).slice(-args.length);
  const at = raw.findIndex((arg) => !isUtf8(arg));
  return at < 0
    ? undefined
    : `argument ${at + 1} is not UTF-8, and would become ${JSON.stringify(args[at])}; ${ADVICE}`;
}

function systemCommandLine(): Uint8Array {
  return readFileSync("/proc/self/cmdline");
}

/** Each argument ends with a zero byte. */
function splitAtZeros(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0, start);
    const stop = end < 0 ? bytes.length : end;
    parts.push(bytes.subarray(start, stop));
    start = stop + 1;
  }
  return parts;
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

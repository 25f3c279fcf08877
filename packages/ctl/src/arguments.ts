/**
 * Node gives a program its arguments as text, and puts U+FFFD in the place of bytes that are no
 * UTF-8: a key of such bytes would quietly become another one. Where the system tells the bytes
 * they are looked at, and such an argument is refused.
 */
import { readFileSync } from "node:fs";

const ADVICE =
  'give a key of other bytes to txn, in double quotes ("\\xff"), and a value of other bytes to put on its standard input';

/**
 * What is wrong with a program's arguments, for the user, or undefined. `readBytes` gives the
 * command line as the system has it.
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
    // Not Linux: nobody tells.
    return undefined;
  }
  // The last ones are the program's: before them stand Node, its flags and the program.
  const raw = splitAtZeros(bytes).slice(-args.length);
  const at = raw.findIndex((arg) => !isUtf8(arg));
  return at < 0
    ? undefined
    : `argument ${at + 1} is not UTF-8, and would become ${JSON.stringify(args[at])}; ${ADVICE}`;
}

function systemCommandLine(): Uint8Array {
  return readFileSync("/proc/self/cmdline");
}

/** Each argument ends with a zero. */
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

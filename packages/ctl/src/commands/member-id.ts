/** Parses ids of members: hexadecimal, as they are printed. */
import { badArguments } from "@quorate/cli";

const UINT64_LIMIT = 1n << 64n;

/**
 * An id from an argument. Throws Exit.
 * @param describe makes the message from Go's reason
 */
export function parseMemberId(
  text: string,
  describe: (reason: string) => string = (reason) =>
    `bad member ID arg (${reason}), expecting ID in Hex`,
): bigint {
  const fail = (why: string): never => {
    throw badArguments(describe(`strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`));
  };
  if (!/^[0-9a-fA-F]+$/.test(text)) return fail("invalid syntax");
  const id = BigInt(`0x${text}`);
  return id < UINT64_LIMIT ? id : fail("value out of range");
}

import { CodedError } from "@quorate/proto";

/**
 * A header block that cannot be decoded (RFC 7541, section 2.3.3 and others). The dynamic tables of
 * the two sides no longer agree, so the connection must end with COMPRESSION_ERROR.
 */
export class HpackError extends CodedError<"Compression"> {
  constructor(problem: string) {
    super("HpackError", "Compression", problem);
  }
}

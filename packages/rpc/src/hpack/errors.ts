/**
 * A header block that cannot be decoded. The two sides' tables no longer agree, so the connection
 * must end with COMPRESSION_ERROR.
 */
export class HpackError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "HpackError";
  }
}

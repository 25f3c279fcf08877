/**
 * Compressed messages (grpc-encoding). The core knows the rules, the driver brings the algorithm.
 */
import { GrpcCode } from "../codes.ts";
import { type MessageBytes, StatusError } from "../service.ts";

/** The gzip of the platform. */
export interface Compressor {
  /**
   * The message decompressed at once, or undefined if it has more than `mostBytes`, which is found
   * out without making more than that of it. Throws StatusError if it has more than `maxBytes`, or
   * for what is no gzip.
   */
  decompressNow(message: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined;
  /**
   * The message decompressed beside other work. Never makes more than `maxBytes` of it; rejects
   * with the same errors.
   */
  decompressLater(message: Uint8Array, maxBytes: number): Promise<Uint8Array>;
  /** The message compressed at once; for up to MAX_COMPRESSED_NOW_BYTES. */
  compressNow(message: MessageBytes): Uint8Array;
  /** The message compressed beside other work. */
  compressLater(message: MessageBytes): Promise<Uint8Array>;
}

/** Messages that take longer to compress than other calls should wait. */
export const MAX_COMPRESSED_NOW_BYTES = 128 * 1024;

/** Encodings that a client may use, as the value of grpc-accept-encoding. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/**
 * What a grpc-encoding header says of the compressed messages of its call: gzip, none at all, or an
 * encoding that we do not have.
 */
export function encodingOf(value: string | undefined): "gzip" | "identity" | "unknown" {
  if (value === undefined || value === "" || value === "identity") return "identity";
  return value === "gzip" ? "gzip" : "unknown";
}

/** The status of a call with an encoding that we do not have, in grpc-go's words. */
export function unknownEncoding(value: string): StatusError {
  return new StatusError(
    GrpcCode.Unimplemented,
    `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(value)}`,
  );
}

/** Throws grpc-go's StatusError for a compressed message in a call that has not announced any. */
export function checkCompressed(gzip: boolean): void {
  if (!gzip)
    throw new StatusError(
      GrpcCode.Internal,
      "grpc: compressed flag set with identity or empty encoding",
    );
}

/**
 * Compressed messages (grpc-encoding). The pure code has the rules; packages/rpc/node provides the
 * algorithm.
 */
import { GrpcCode } from "@quorate/proto";
import { StatusError, type UnaryResponse } from "../service.ts";

/** The gzip of the platform. */
export interface Compressor {
  /**
   * Decompresses the message at once, unless the result has more than `mostBytes`: then returns
   * undefined, after decompressing no more than that. Throws StatusError if the result has more
   * than `maxBytes`, or if the message is not gzip.
   */
  decompressNow(message: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined;
  /**
   * Decompresses the message on another thread. Never produces more than `maxBytes`; rejects with
   * the same errors.
   */
  decompressLater(message: Uint8Array, maxBytes: number): Promise<Uint8Array>;
  /** Compresses the message at once; for up to MAX_COMPRESSED_NOW_BYTES. */
  compressNow(message: UnaryResponse): Uint8Array;
  /** Compresses the message on another thread. */
  compressLater(message: UnaryResponse): Promise<Uint8Array>;
}

/** Larger messages take too long to compress on the event loop. */
export const MAX_COMPRESSED_NOW_BYTES = 128 * 1024;

/** Encodings that a client may use, as the value of grpc-accept-encoding. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/** The encoding named by a grpc-encoding header: gzip, none, or an unsupported one. */
export function encodingOf(value: string | undefined): "gzip" | "identity" | "unknown" {
  if (value === undefined || value === "" || value === "identity") return "identity";
  return value === "gzip" ? "gzip" : "unknown";
}

/** The status of a call with an unsupported encoding, with grpc-go's text. */
export function unknownEncoding(value: string): StatusError {
  return new StatusError(
    GrpcCode.Unimplemented,
    `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(value)}`,
  );
}

/** Throws grpc-go's StatusError for a compressed message in a call without grpc-encoding. */
export function checkCompressed(gzip: boolean): void {
  if (!gzip)
    throw new StatusError(
      GrpcCode.Internal,
      "grpc: compressed flag set with identity or empty encoding",
    );
}

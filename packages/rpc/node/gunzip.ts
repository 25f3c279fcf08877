/** Compressed request messages (grpc-encoding: gzip). */
import { gunzipSync } from "node:zlib";
import { GrpcCode } from "../src/codes.ts";
import { StatusError } from "../src/service.ts";

/** Encodings that a client may use, as the value of grpc-accept-encoding. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/**
 * What to do with compressed messages under a grpc-encoding header: true if they are gzip, false if there must not be any. Throws
 * UNIMPLEMENTED for any other encoding.
 */
export function usesGzip(encoding: string | undefined): boolean {
  if (encoding === "gzip") return true;
  if (encoding === undefined || encoding === "" || encoding === "identity") return false;
  throw new StatusError(GrpcCode.Unimplemented, `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(encoding)}`);
}

/** The decompressed message; never makes more than `maxBytes` of it. Throws StatusError with grpc-go's texts. */
export function gunzip(message: Uint8Array, gzip: boolean, maxBytes: number): Uint8Array {
  if (!gzip) throw new StatusError(GrpcCode.Internal, "grpc: compressed flag set with identity or empty encoding");
  try {
    return gunzipSync(message, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE") {
      throw new StatusError(GrpcCode.ResourceExhausted, `grpc: received message after decompression larger than max ${maxBytes}`);
    }
    throw new StatusError(GrpcCode.Internal, `grpc: failed to decompress the message: ${(error as Error).message}`);
  }
}

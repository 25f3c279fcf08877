/** gzip by Node's zlib, for compressed messages (grpc-encoding: gzip). */
import { promisify } from "node:util";
import { constants, gunzip, gunzipSync, gzip, gzipSync } from "node:zlib";
import { GrpcCode } from "@quorate/proto";
import type { Compressor } from "../../src/grpc/compressor.ts";
import { joinMessage } from "../../src/messages.ts";
import { StatusError, type UnaryResponse } from "../../src/service.ts";

const gzipLater = promisify(gzip);
const gunzipLater = promisify(gunzip);
const FAST = { level: constants.Z_BEST_SPEED };

function isTooLong(error: unknown): boolean {
  return (error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE";
}

function statusOf(error: unknown, maxBytes: number): StatusError {
  return isTooLong(error)
    ? new StatusError(
        GrpcCode.ResourceExhausted,
        `grpc: received message after decompression larger than max ${maxBytes}`,
      )
    : new StatusError(
        GrpcCode.Internal,
        `grpc: failed to decompress the message: ${(error as Error).message}`,
      );
}

export const nodeCompressor: Compressor = {
  decompressNow(message: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined {
    try {
      return gunzipSync(message, { maxOutputLength: Math.min(maxBytes, mostBytes) });
    } catch (error) {
      if (mostBytes < maxBytes && isTooLong(error)) return undefined;
      throw statusOf(error, maxBytes);
    }
  },
  decompressLater(message: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    return gunzipLater(message, { maxOutputLength: maxBytes }).catch((error: unknown) => {
      throw statusOf(error, maxBytes);
    });
  },
  compressNow(message: UnaryResponse): Uint8Array {
    return gzipSync(joinMessage(message), FAST);
  },
  compressLater(message: UnaryResponse): Promise<Uint8Array> {
    return gzipLater(joinMessage(message), FAST);
  },
};

/** gzip by Node's zlib, for compressed messages (grpc-encoding: gzip). */
import { promisify } from "node:util";
import { constants, gunzipSync, gzip, gzipSync } from "node:zlib";
import { GrpcCode } from "../../src/codes.ts";
import type { Compressor } from "../../src/grpc/compressor.ts";
import { type MessageBytes, StatusError } from "../../src/service.ts";

const gzipLater = promisify(gzip);
const FAST = { level: constants.Z_BEST_SPEED };

function whole(message: MessageBytes): Uint8Array {
  return message instanceof Uint8Array ? message : Buffer.concat(message);
}

export const nodeCompressor: Compressor = {
  decompress(message: Uint8Array, maxBytes: number): Uint8Array {
    try {
      return gunzipSync(message, { maxOutputLength: maxBytes });
    } catch (error) {
      if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE") {
        throw new StatusError(GrpcCode.ResourceExhausted, `grpc: received message after decompression larger than max ${maxBytes}`);
      }
      throw new StatusError(GrpcCode.Internal, `grpc: failed to decompress the message: ${(error as Error).message}`);
    }
  },
  compressNow(message: MessageBytes): Uint8Array {
    return gzipSync(whole(message), FAST);
  },
  compressLater(message: MessageBytes): Promise<Uint8Array> {
    return gzipLater(whole(message), FAST);
  },
};

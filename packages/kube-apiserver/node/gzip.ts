/** gzip on zlib's threads, so that large responses do not hold the event loop. */
import { createGzip } from "node:zlib";
import type { Compressor } from "../src/handlers/body-sink.ts";

/** Kubernetes' level: the least processor time. */
const LEVEL = 1;

/** A compressor of one response. */
export function gzipCompressor(): Compressor {
  const gzip = createGzip({ level: LEVEL });
  let ready: Buffer[] = [];
  let failure: Error | undefined;
  gzip.on("data", (piece: Buffer) => ready.push(piece));
  gzip.on("error", (error) => {
    failure = error;
  });
  const taken = (): Uint8Array => {
    const bytes = Buffer.concat(ready);
    ready = [];
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  };
  return {
    push: (piece) =>
      new Promise((resolve, reject) => {
        gzip.write(piece, () => (failure === undefined ? resolve(taken()) : reject(failure)));
      }),
    finish: () =>
      new Promise((resolve, reject) => {
        gzip.once("error", reject);
        gzip.once("end", () => resolve(taken()));
        gzip.end();
      }),
    close: () => gzip.destroy(),
  };
}

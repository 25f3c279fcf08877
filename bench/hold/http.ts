/** A request over HTTP/1.1 whose response is read to its end, or to a point, and thrown away. */
import { request } from "node:http";

/** What is done with the response. */
export interface Reading {
  /** Bytes after which the client goes away. */
  readonly leavesAfterBytes?: number;
  /** Bytes that it reads in a second at most. */
  readonly bytesPerS?: number;
}

/**
 * Sends a request to the member at host:port; returns the bytes of the response's body. Rejects for
 * a status of an error, a body that is cut off, or after `limitMs`.
 */
export function readHttp(
  address: string,
  { method, path, body }: { readonly method: string; readonly path: string; readonly body: string },
  limitMs: number,
  { leavesAfterBytes = Number.POSITIVE_INFINITY, bytesPerS }: Reading = {},
): Promise<number> {
  const [host, port] = address.split(":");
  return new Promise<number>((resolve, reject) => {
    const call = request({ host, port, method, path, agent: false }, (response) => {
      let sizeBytes = 0;
      response.on("data", (chunk: Buffer) => {
        sizeBytes += chunk.length;
        if (sizeBytes >= leavesAfterBytes) {
          resolve(sizeBytes);
          call.destroy();
        } else if (bytesPerS !== undefined) {
          response.pause();
          setTimeout(() => response.resume(), (chunk.length * 1000) / bytesPerS);
        }
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(sizeBytes);
        else reject(new Error(`status ${response.statusCode}`));
      });
      response.on("error", reject);
    });
    call.setTimeout(limitMs, () => call.destroy(new Error(`nothing for ${limitMs} ms`)));
    call.on("error", reject);
    call.end(body);
  });
}

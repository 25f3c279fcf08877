/** Requests of the server itself to other API servers. */
import type { Clock } from "@quorate/host";
import { joined } from "../handlers/call.ts";
import type { BackendRequest, Backends, WholeResponse } from "./backends.ts";

export interface ResponseBounds {
  readonly timeoutMs: number;
  /** Of the body; 0: it is not read. */
  readonly maxBytes: number;
}

/** Rejects with Error: no whole response came, it was too long, or it took too long. */
export function wholeResponse(
  backends: Backends,
  request: BackendRequest,
  { timeoutMs, maxBytes }: ResponseBounds,
  clock: Pick<Clock, "after">,
): Promise<WholeResponse> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    let sizeBytes = 0;
    let status = 0;
    let headers: Readonly<Record<string, string>> = {};
    const fail = (why: string): void => {
      timer.cancel();
      call.abort();
      reject(new Error(why));
    };
    const done = (): void => {
      timer.cancel();
      resolve({ status, headers, body: joined(pieces, sizeBytes) });
    };
    const timer = clock.after(timeoutMs, () => fail("context deadline exceeded"));
    const call = backends.call(request, {
      responded(code, fields) {
        status = code;
        headers = fields;
        if (maxBytes > 0) return;
        call.abort();
        done();
      },
      data(bytes) {
        sizeBytes += bytes.length;
        if (sizeBytes > maxBytes) fail(`the response has more than ${maxBytes} bytes`);
        else pieces.push(bytes);
      },
      ended: done,
      upgraded: (_, tunnel) => {
        tunnel.destroy();
        fail("the connection was switched to another protocol");
      },
      failed: fail,
    });
  });
}

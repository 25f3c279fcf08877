/**
 * A client in a pod: writes a key of its own again and again through the client service until
 * standard output closes or it is stopped, and prints each that was acknowledged. Arguments: the
 * endpoint, then the files of the authority, the certificate and the key.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@quorate/client/node";

const [endpoint, ca, cert, key] = process.argv.slice(2) as [string, string, string, string];
const tls = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) };
let isStopped = false;
process.on("SIGTERM", () => {
  isStopped = true;
});
for (let i = 0; !isStopped; ) {
  // A client of its own after each failure, so that the service's name is looked up again.
  const client = connect({ endpoints: [endpoint], tls, timeoutMs: 2000, dialTimeoutMs: 1000 });
  try {
    for (; !isStopped; i++) {
      await client.put(`w/${String(i).padStart(8, "0")}`, String(i));
      console.log(i);
      await delay(20);
    }
  } catch {
    // Whether it was written is not known; the key is not used again.
    i++;
    await delay(50);
  } finally {
    client.close();
  }
}

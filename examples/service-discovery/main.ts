/** Announces the address that is its argument, and prints all of the service each second. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@quorate/client";
import { announce, Directory } from "./services.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
await using session = await client.session({ ttlSeconds: 5 });
await announce(client, session, "example", process.argv[2] ?? `127.0.0.1:${process.pid}`);
await using directory = await Directory.of(client, "example");
for (; !stop.signal.aborted; await sleep(1000, undefined, { signal: stop.signal }).catch(() => {}))
  console.log(directory.addresses.join(" "));

/** Prints each second for which of ten users the flag "dark" is on, until control-C. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@quorate/client";
import { Flags } from "./flags.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
await using flags = await Flags.open(client);
const users = Array.from({ length: 10 }, (_, i) => `user-${i}`);
for (; !stop.signal.aborted; await sleep(1000, undefined, { signal: stop.signal }).catch(() => {}))
  console.log(users.filter((user) => flags.isOn("dark", user)).join(" ") || "nobody");

/** Campaigns and says so while it leads, until control-C. Start it twice. */
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@quorate/client";
import { lead } from "./lead.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
const name = `process ${process.pid}`;
const work = async (signal: AbortSignal, token: number): Promise<void> => {
  for (; !signal.aborted; await sleep(1000, undefined, { signal }).catch(() => {}))
    console.log(`${name} leads, with token ${token}`);
};
await lead(client, "example", name, work, stop.signal);

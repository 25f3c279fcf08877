/** Runs a task every five seconds, until control-C. Start it twice: one of both runs it. */
import { connect } from "@quorate/client";
import { every } from "./cron.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
const run = async (timeMs: number): Promise<void> => console.log(new Date(timeMs).toISOString());
await every(client, "example", 5000, run, stop.signal);

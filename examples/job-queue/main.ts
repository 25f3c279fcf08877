/** Adds a job for each argument, and does jobs until control-C. Start it twice. */
import { connect } from "@quorate/client";
import { Jobs } from "./jobs.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
const jobs = new Jobs<string>(client, "example");
for (const job of process.argv.slice(2)) await jobs.add(job);
await using session = await client.session({ ttlSeconds: 10 });
await jobs.work(session, async (job) => console.log(`doing ${job}`), stop.signal);

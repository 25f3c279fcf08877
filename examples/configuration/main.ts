/** Prints the settings at each change, until control-C. */
import { connect } from "@quorate/client";
import { liveSettings } from "./settings.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
await liveSettings(client, (settings) => console.log(settings), stop.signal);

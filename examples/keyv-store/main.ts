/** Keeps a value for two seconds. */
import { connect } from "@quorate/client";
import { QuorateStore } from "./store.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
// In a program with Keyv: new Keyv({ store: new QuorateStore(client), namespace: "pages" }).
const store = new QuorateStore(client);
await store.set("start", { title: "Start" }, Date.now() + 2000);
console.log(await store.get("start"));

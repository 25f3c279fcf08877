/** Keeps an item for two seconds. */
import { connect } from "@quorate/client";
import { quorateDriver } from "./driver.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
// In a program with unstorage: createStorage({ driver: quorateDriver(client) }).
const driver = quorateDriver(client);
await driver.setItem("page:start", "Start", { ttl: 2 });
console.log(await driver.getItem("page:start"));

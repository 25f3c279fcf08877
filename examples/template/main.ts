/** Visits a page. */
import { connect } from "@quorate/client";
import { visit } from "./visits.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
console.log(`visit number ${await visit(client, "start")}`);

/** Asks ten times whether a caller may call: five calls at once, and one a second. */
import { connect } from "@quorate/client";
import { RateLimiter } from "./limiter.ts";

await using client = connect({ endpoints: [process.env["ENDPOINT"] ?? "http://127.0.0.1:2379"] });
const limiter = new RateLimiter(client, { burst: 5, perSecond: 1 });
for (let call = 1; call <= 10; call++)
  console.log(`call ${call}:`, (await limiter.take("ann")) ? "yes" : "too many");

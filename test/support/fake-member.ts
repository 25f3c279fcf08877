/**
 * A program that takes a member's flags and only answers GET /health over TLS: a stand-in for tests
 * of the scripts that start members.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const flags = new Map(
  process.argv.slice(2).map((flag) => flag.replace(/^--/, "").split("=") as [string, string]),
);
const url = new URL(flags.get("listen-client-urls")!);
console.log(
  `${flags.get("name")} says hello to a cluster that is ${flags.get("initial-cluster-state")}`,
);
for (const name of Object.keys(process.env).filter((one) => one.startsWith("ETCD_")))
  console.log(`variable ${name}`);
if (process.env["FAKE_MEMBER_DIES"] === flags.get("name")) {
  console.log("cannot go on");
  process.exit(3);
}
const read = (name: string): string => readFileSync(flags.get(name)!, "utf8");
createServer(
  {
    cert: read("cert-file"),
    key: read("key-file"),
    ca: read("trusted-ca-file"),
    requestCert: true,
    rejectUnauthorized: true,
  },
  (_request, response) => {
    if (process.env["FAKE_MEMBER_LEARNS"] !== flags.get("name"))
      return response.end('{"health":"true","reason":""}');
    response.statusCode = 503;
    response.end(
      '{"health":"false","reason":"RANGE ERROR:etcdserver: rpc not supported for learner"}',
    );
  },
).listen(Number(url.port), url.hostname);
process.on("SIGTERM", () => process.exit(0));

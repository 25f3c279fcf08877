/**
 * Endpoints by SRV records: the queries, their order, and the errors without records.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { discoverEndpoints, type LookupSrv } from "../src/discovery.ts";

const records: Readonly<Record<string, readonly { host: string; port: number }[]>> = {
  "etcd-client-ssl": [
    { host: "a.example.org", port: 2379 },
    { host: "2001:db8::1", port: 2380 },
  ],
  "etcd-client": [{ host: "b.example.org", port: 2379 }],
  "etcd-client-blue": [{ host: "blue.example.org", port: 1 }],
};

const lookup: LookupSrv = async (service, domain) => {
  assert.equal(domain, "example.org");
  const found = records[service];
  if (found === undefined)
    throw Object.assign(new Error(`querySrv ENOTFOUND _${service}._tcp.${domain}`), {
      code: "ENOTFOUND",
    });
  return found;
};

async function ask(
  serviceName: string,
  takesPlain: boolean,
): Promise<{ endpoints: string[]; warnings: string[] }> {
  const warnings: string[] = [];
  const endpoints = await discoverEndpoints(
    { domain: "example.org", serviceName, takesPlain },
    lookup,
    (text) => warnings.push(text),
  );
  return { endpoints, warnings };
}

test("endpoints with TLS come first, others only where they are accepted", async () => {
  const secure = ["https://a.example.org:2379", "https://[2001:db8::1]:2380"];
  assert.deepEqual(await ask("", true), {
    endpoints: [...secure, "http://b.example.org:2379"],
    warnings: [],
  });
  assert.deepEqual(await ask("", false), {
    endpoints: secure,
    warnings: ['ignoring discovered insecure endpoint "http://b.example.org:2379"'],
  });
});

test("a service name; one kind of record is enough, and without any both reasons are reported", async () => {
  assert.deepEqual((await ask("blue", true)).endpoints, ["http://blue.example.org:1"]);
  assert.deepEqual((await ask("blue", false)).endpoints, []);
  await assert.rejects(ask("green", true), {
    message:
      "dns lookup errors: lookup _etcd-client-ssl-green._tcp.example.org: no such host and " +
      "lookup _etcd-client-green._tcp.example.org: no such host",
  });
});

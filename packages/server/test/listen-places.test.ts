/** One address for several URLs: which may share it, and what is listened on then. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listenAddresses } from "../node/listen.ts";
import { loadConfig, type ServerConfig } from "../src/config/index.ts";

async function configOf(...argv: string[]): Promise<ServerConfig> {
  const advertised = "--advertise-client-urls=https://localhost:1";
  const all = [advertised, "--auto-tls", "--peer-auto-tls", ...argv];
  const loaded = await loadConfig(all, {}, () => assert.fail("reads a file"));
  assert.equal(loaded.kind, "run");
  return (loaded as { config: ServerConfig }).config;
}

// URLs are sorted, as etcd sorts them.
test("client URLs that differ in TLS alone are one address", async () => {
  const { listenClientUrls } = await configOf(
    "--listen-client-urls=http://localhost:1,https://localhost:1,https://127.0.0.1:2,https://127.0.0.1:0,http://127.0.0.1:0",
  );
  assert.deepEqual(
    listenAddresses(listenClientUrls, "all", false).map(({ port, secure, alsoPlain }) => [
      ...[port, secure, alsoPlain],
    ]),
    [
      [0, false, true],
      [1, true, true],
      [0, true, false],
      [2, true, false],
    ],
  );
});

test("one address for two purposes is refused", async () => {
  for (const [message, ...argv] of [
    [
      "cannot bind both --listen-client-urls and --listen-client-http-urls on the same url https://localhost:2379",
      "--listen-client-http-urls=https://localhost:2379",
    ],
    [
      "--listen-peer-urls and --listen-peer-urls both want to listen on https://localhost:2380",
      "--listen-peer-urls=http://localhost:2380,https://localhost:2380",
    ],
    [
      "--listen-metrics-urls and --listen-client-urls both want to listen on http://localhost:2379",
      "--listen-metrics-urls=http://localhost:2379",
    ],
  ])
    await assert.rejects(configOf(...argv), { message });
});

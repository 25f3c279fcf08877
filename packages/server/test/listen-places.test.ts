/** One address for several URLs: which may share it, and what is listened on then. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePorts } from "../../../test/support/ports.ts";
import { checkFree, listenAddresses } from "../node/listen.ts";
import { nextStep } from "../node/next-step.ts";
import { loadConfig, type ServerConfig } from "../src/config/index.ts";
import { parseUrl } from "../src/config/url.ts";

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
      "two URLs of --listen-peer-urls want to listen on https://localhost:2380: give one of them another port",
      "--listen-peer-urls=http://localhost:2380,https://localhost:2380",
    ],
    [
      "--listen-metrics-urls and --listen-client-urls both want to listen on http://localhost:2379: give one of them another port",
      "--listen-metrics-urls=http://localhost:2379",
    ],
    // Go listens on 127.0.0.1 for localhost, and so does this member.
    [
      "cannot bind both --listen-client-urls and --listen-client-http-urls on the same url http://127.0.0.1:2379",
      "--listen-client-http-urls=http://127.0.0.1:2379",
    ],
    [
      "--listen-metrics-urls and --listen-peer-urls both want to listen on http://127.0.0.1:2380: give one of them another port",
      "--listen-metrics-urls=http://127.0.0.1:2380",
    ],
  ])
    await assert.rejects(configOf(...argv), { message });
});

test("URLs of one member that exclude each other are both named, before anything is written", async () => {
  const [port] = await freePorts(1);
  const other = createServer().listen(port, "127.0.0.1");
  await once(other, "listening");
  const urls = (...hosts: string[]) => hosts.map((host) => parseUrl(`http://${host}:${port}`));
  const [all, one, localhost] = urls("0.0.0.0", "127.0.0.1", "localhost");
  // Another program has it: no URL of this member is to blame.
  const taken = `listen tcp 127.0.0.1:${port}: bind: address already in use (for ${one.text})`;
  await assert.rejects(checkFree([one], false), { message: taken });
  other.close();
  await once(other, "close");
  await checkFree([one, localhost], false);
  await checkFree([all, one], true);
  await assert.rejects(checkFree([all, one], false), ({ message }: Error) => {
    assert.equal(message, `${taken.slice(0, -1)}, and this member listens on ${all.text} too)`);
    assert.equal(
      nextStep(message, "root"),
      `give ${one.text} and ${all.text} different ports: 0.0.0.0 and :: are all addresses`,
    );
    return true;
  });
});

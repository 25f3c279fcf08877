/** One address for several URLs: which may share it, and what is listened on then. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { openDoor } from "@quorate/host/node";
import { freePorts } from "../../../test/support/ports.ts";
import { openPorts } from "../node/listen.ts";
import { nextStep } from "../node/next-step.ts";
import { loadConfig } from "../src/config/load.ts";
import type { ServerConfig } from "../src/config/server-config.ts";

async function configOf(...argv: string[]): Promise<ServerConfig> {
  const advertised = "--advertise-client-urls=https://localhost:1";
  const all = [advertised, "--auto-tls", "--peer-auto-tls", ...argv];
  const loaded = await loadConfig(all, {}, () => assert.fail("reads a file"));
  assert.equal(loaded.kind, "run");
  return (loaded as { config: ServerConfig }).config;
}

/** Opens the ports of URLs for clients, and the peer port elsewhere. */
async function open(...clientUrls: readonly string[]) {
  const [peer] = await freePorts(1);
  const config = await configOf(
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    `--listen-client-urls=${clientUrls.join(",")}`,
  );
  return openPorts(config, silentLogger);
}

// URLs are sorted, as etcd sorts them.
test("client URLs that differ in TLS alone are one address", async () => {
  const [one, two] = await freePorts(2);
  const ports = await open(
    `http://localhost:${one}`,
    `https://localhost:${one}`,
    `https://127.0.0.1:${two}`,
    "https://127.0.0.1:0",
    "http://127.0.0.1:0",
  );
  ports.close();
  assert.deepEqual(
    ports.client.map(({ port, secure, alsoPlain }) => [port, secure, alsoPlain]),
    [
      [0, false, true],
      [one, true, true],
      [0, true, false],
      [two, true, false],
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
  const other = await openDoor({ host: "127.0.0.1", port });
  const one = `http://127.0.0.1:${port}`;
  // Another program has it: no URL of this member is to blame.
  const taken = `listen tcp 127.0.0.1:${port}: bind: address already in use (for ${one})`;
  await assert.rejects(open(one), { message: taken, code: "EADDRINUSE" });
  await other.close();
  (await open(one, `https://localhost:${port}`)).close();
  const all = `http://0.0.0.0:${port}`;
  await assert.rejects(open(all, one), ({ message }: Error) => {
    assert.equal(message, `${taken.slice(0, -1)}, and this member listens on ${all} too)`);
    assert.equal(
      nextStep(message, "root"),
      `give ${one} and ${all} different ports: 0.0.0.0 and :: are all addresses`,
    );
    return true;
  });
  // None of its ports stays open.
  await (await openDoor({ host: "127.0.0.1", port })).close();
});

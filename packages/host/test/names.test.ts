/**
 * Name servers that do not respond, or respond with garbage: the query fails with a reason, in
 * bounded time.
 */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import dns from "node:dns";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { nodeNames } from "@quorate/host/node";

const sockets: Socket[] = [];
const systems = dns.getServers();
after(() => {
  dns.setServers(systems);
  for (const socket of sockets) socket.close();
});

/** Points the process at a fake name server; returns the number of queries. */
async function nameServer(answer: (question: Buffer) => Buffer | undefined): Promise<() => number> {
  const socket = createSocket("udp4");
  sockets.push(socket);
  let asked = 0;
  socket.on("message", (question, { port, address }) => {
    asked++;
    const bytes = answer(question);
    if (bytes !== undefined) socket.send(bytes, port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  dns.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`]);
  return () => asked;
}

test("a query to a silent name server fails after a few tries", {
  timeout: 120_000,
}, async () => {
  const asked = await nameServer(() => undefined);
  await assert.rejects(nodeNames.lookupSrv("etcd-server", "silent.test"), { code: "ETIMEOUT" });
  assert.equal(asked(), 3);
});

test("responses of random bytes, truncated ones and wrong counts yield an error or no records, never invented ones", {
  timeout: 120_000,
}, async () => {
  const random = new SeededRandom(11n);
  for (let round = 0; round < 40; round++) {
    await nameServer((question) => {
      // A response with the right id and flags, followed by random bytes.
      const bytes = Buffer.concat([
        question,
        Buffer.from(Array.from({ length: random.below(80) }, () => random.below(256))),
      ]);
      bytes.writeUInt16BE(0x8180, 2);
      bytes.writeUInt16BE(random.below(4), 6);
      return round % 3 === 0 ? bytes.subarray(0, 12 + random.below(bytes.length - 12)) : bytes;
    });
    // Each round uses a name of its own, so that no cache has it.
    const records = await nodeNames
      .lookupSrv("etcd-server", `r${round}.test`)
      .catch((error: Error & { code?: string }) => {
        assert.match(String(error.code), /^E[A-Z]+$/);
        return [];
      });
    assert.deepEqual(records, []);
  }
});

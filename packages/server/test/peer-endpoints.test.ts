/**
 * Every endpoint of the peer port, by the table that serves it: whatever comes, an answer with a
 * status, and a member that lives on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { MAX_BATCH_LEASES } from "@quorate/member/testing";
import { fromUtf8, LeaseTimeToLiveRequest, leasepb } from "@quorate/proto";
import { httpRouter } from "../src/http/endpoints.ts";
import { peerEndpoints, versionOf } from "../src/http/peer-endpoints.ts";
import { get, put, World } from "./support/world.ts";

test("every endpoint of the peer port answers whatever comes (seed 4)", async () => {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const endpoints = peerEndpoints(member, versionOf(member));
  const router = httpRouter(endpoints);
  const random = new SeededRandom(4n);
  const valid = [
    leasepb.LeaseInternalRequest.encode({
      LeaseTimeToLiveRequest: LeaseTimeToLiveRequest.create({ ID: -1n, keys: true }),
    }),
    fromUtf8('{"revision":1}'),
    new Uint8Array(8),
  ];
  const hostile = [
    ...[
      "",
      "{",
      "[]",
      "null",
      '"x"',
      '{"revision":1e400}',
      '{"revision":-1}',
      '{"revision":"1"}',
      `${"[".repeat(100_000)}`,
    ].map((one) => fromUtf8(one)),
    Uint8Array.of(8),
    Uint8Array.of(10, 2, 8),
    new Uint8Array(7),
    new Uint8Array(8 * (MAX_BATCH_LEASES + 1)),
    new Uint8Array(8).fill(255),
  ];
  for (const path of endpoints.keys()) {
    for (let i = 0; i < 60; i++) {
      const from = i < hostile.length ? hostile[i] : valid[random.below(valid.length)];
      const body =
        i < hostile.length
          ? from
          : from.map((byte) => (random.below(6) === 0 ? random.below(256) : byte));
      const tails = ["", "", "0", "1", "x", `${2n ** 64n}`, "-1", "9".repeat(5000), "%00", "../.."];
      const method = ["POST", "POST", "GET", "PUT", "x"][random.below(5)];
      const asked = path.endsWith("/") ? path + tails[random.below(tails.length)] : path;
      const request = {
        method,
        path: asked,
        query: "",
        headers: new Map<string, string>(),
        body,
        peerAddress: "",
        peerCommonName: undefined,
      };
      const answer = await world.settled(Promise.resolve(router(request)));
      assert.ok(answer.status >= 200 && answer.status < 600, `${method} ${asked}`);
    }
    assert.equal(world.nodes[0].ended, undefined, path);
  }
  await world.settled(put(member, "still", "here"));
  assert.equal(await world.settled(get(member, "still")), "here");
  await world.stopAll();
});

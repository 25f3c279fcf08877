/**
 * What a browser sends for a page of another site does nothing on a member's plain ports; members'
 * own requests act.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "@quorate/host";
import type { Member } from "@quorate/member";
import { PROMOTE_PATH } from "@quorate/member";
import { ClusterService, MemberAddRequest, MemberAddResponse } from "@quorate/proto";
import { httpRouter } from "../src/http/endpoints.ts";
import { peerEndpoints, versionOf } from "../src/http/peer-endpoints.ts";
import { call, World } from "./support/world.ts";

async function send(
  member: Member,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  return httpRouter(peerEndpoints(member, versionOf(member)))({
    method,
    path,
    query: "",
    headers: new Map(Object.entries(headers)),
    body: new Uint8Array(0),
    peerAddress: "127.0.0.1:1",
    peerCommonName: undefined,
  });
}

/**
 * What browsers add to a post across sites; the last ones know neither Origin nor Sec-Fetch-Site.
 */
const CROSS_SITE: readonly Readonly<Record<string, string>>[] = [
  {
    origin: "https://evil.example",
    "sec-fetch-site": "cross-site",
    "content-type": "text/plain;charset=UTF-8",
  },
  { origin: "null" },
  { "sec-fetch-site": "same-site" },
  { "content-type": "text/plain" },
  { "content-type": "Application/X-WWW-Form-Urlencoded" },
  { "content-type": "multipart/form-data; boundary=x" },
];

test("a post across sites promotes no learner and asks the member nothing; a member's does", async () => {
  const world = new World(1);
  await world.startAll();
  const leader = world.leader()!.member!;
  const node = world.addNode([]);
  const request = MemberAddRequest.encode({ peerURLs: [node.peerUrl], isLearner: true });
  const { member: added } = MemberAddResponse.decode(
    await world.settled(call(leader, ClusterService.methods.MemberAdd.path, request)),
  );
  const first = world.nodes[0];
  node.flags = [
    "--initial-cluster",
    `${first.name}=${first.peerUrl},${node.name}=${node.peerUrl}`,
    "--initial-cluster-state",
    "existing",
  ];
  const learner = await world.start(node);
  await world.until(() => learner.appliedIndex === leader.appliedIndex);
  const isLearner = () => leader.store.membership.member(added!.ID)!.isLearner;
  for (const headers of CROSS_SITE) {
    for (const path of [
      PROMOTE_PATH + added!.ID,
      "/leases",
      "/leases/internal",
      "/members/hashkv",
      "/members/store-to/1",
      "/members",
    ]) {
      const { status, body } = await world.settled(send(leader, "POST", path, headers));
      assert.equal(status, 403, `${path} ${JSON.stringify(headers)}`);
      assert.match(String(body), /^this port does not answer browsers' requests across sites: /);
    }
  }
  assert.ok(isLearner());
  // A browser may read what everybody may read; the page does not see it.
  assert.equal((await send(leader, "GET", "/version", CROSS_SITE[0])).status, 200);
  const { status } = await world.settled(
    send(leader, "POST", PROMOTE_PATH + added!.ID, { "content-type": "application/protobuf" }),
  );
  assert.equal(status, 200);
  assert.ok(!isLearner());
  await world.stopAll();
});

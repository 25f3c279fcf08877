/**
 * Who may speak to a member over its peer port: members of the cluster, under their own
 * certificates, and no other process.
 */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { TlsOptions } from "@quorate/host/node";
import type { AskMembers } from "@quorate/transport";
import { RecordingListener } from "@quorate/transport/testing";
import { Agent, request } from "undici";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type MemberSettings, type RealMember, RealNetwork } from "./helpers/network.ts";

const CA = makeAuthority();
const PEER = makeLocalCertificate(CA, "peer");
/**
 * Client certificates of the members' own authority, as the shipped tools made them, and one that
 * only names its host.
 */
const CLIENTS: readonly (readonly [string, TestCertificate, RegExp])[] = [
  [
    "names no host",
    makeCertificate({ name: "client", issuer: CA, usage: "client" }),
    /names no host, so it is not a member's/,
  ],
  [
    "names no host and is good for servers",
    makeCertificate({ name: "client", issuer: CA }),
    /names no host, so it is not a member's/,
  ],
  [
    "is good for clients only",
    makeCertificate({ name: "client", issuer: CA, usage: "client", ipAddresses: ["127.0.0.1"] }),
    /is good for clients only, so it is not a member's/,
  ],
];

const tlsOf = (
  { certPem, keyPem }: TestCertificate,
  more: Partial<TlsOptions> = {},
): TlsOptions => ({
  certPem,
  keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
  ...more,
});

/** No member is reported. */
const reportsNone: AskMembers = async () => {};

async function network(t: TestContext, tls?: TlsOptions): Promise<RealNetwork> {
  const net = new RealNetwork(tls);
  t.after(() => net.close());
  return net;
}

/** A member whose peer port answers "ok" to everything. */
function member(net: RealNetwork, id: bigint, settings: MemberSettings = {}): Promise<RealMember> {
  return net.start(id, new RecordingListener(), undefined, {
    http: () => ({ status: 200, headers: {}, body: "ok\n" }),
    ...settings,
  });
}

const isUp = (from: RealMember, to: bigint): boolean =>
  from.transport.peers().some(({ id, activeSinceMs }) => id === to && !!activeSinceMs);

/** The outsider tries streams and a snapshot; nothing of that reaches the member. */
async function staysOut(
  net: RealNetwork,
  outsider: RealMember,
  target: RealMember,
  why: RegExp,
): Promise<void> {
  outsider.transport.addPeer(target.id, target.urls);
  const whys = () =>
    outsider.logger
      .find("warn", "failed to dial remote peer")
      .map(({ fields }) => String(fields["error"]));
  await net.until("the outsider learns why", () => whys().some((one) => why.test(one)));
  outsider.transport.send([heartbeat(outsider.id, target.id)]);
  outsider.transport.sendSnapshot({
    message: snapshotMessage(outsider.id, target.id),
    body: (async function* () {})(),
  });
  await net.until("its snapshot has failed", () => outsider.listener.snapshotsSent.length > 0);
  assert.deepEqual(outsider.listener.snapshotsSent[0], { id: target.id, taken: false });
  assert.deepEqual([target.listener.messages, target.listener.snapshots], [[], []]);
}

describe("a client certificate of the members' authority", () => {
  for (const [what, certificate, reason] of CLIENTS) {
    it(`that ${what} reads nothing, and opens no stream as a member`, async (t) => {
      const net = await network(t, tlsOf(PEER));
      const target = await member(net, 1n);
      const dispatcher = new Agent({
        connect: { ca: CA.certPem, cert: certificate.certPem, key: certificate.keyPem },
        allowH2: false,
      });
      t.after(() => dispatcher.destroy());
      for (const path of ["/members", "/version", "/leases"])
        await assert.rejects(request(target.urls[0] + path, { dispatcher }));
      const [line] = target.logger.find("warn", "rejected connection on peer endpoint");
      assert.match(String(line.fields["error"]), reason);
      // With the id of a member that is known, too.
      target.transport.addPeer(2n, ["https://127.0.0.1:1"]);
      const listen = [{ host: "127.0.0.1", port: 0, secure: false }];
      const outsider = await member(net, 2n, { options: { tls: tlsOf(certificate), listen } });
      await staysOut(net, outsider, target, /connection closed|EOF|reset/i);
    });
  }

  it("passes where the operator says which certificates are members', or that it is not to be looked at", async (t) => {
    const net = await network(t, tlsOf(PEER));
    const bare = CLIENTS[0][1];
    const ways: readonly MemberSettings["options"][] = [
      { tls: tlsOf(PEER, { allowedCommonNames: ["client", "peer"] }) },
      { tls: tlsOf(PEER, { clientCertPem: PEER.certPem, clientKeyPem: PEER.keyPem }) },
      { skipClientSanVerification: true },
    ];
    for (const [i, options] of ways.entries()) {
      const target = await member(net, BigInt(10 + i), { options });
      const listen = [{ host: "127.0.0.1", port: 0, secure: false }];
      const other = await member(net, BigInt(20 + i), { options: { tls: tlsOf(bare), listen } });
      target.transport.addPeer(other.id, ["https://elsewhere.example:2380"]);
      other.transport.addPeer(target.id, target.urls);
      await net.until("it is taken", () => isUp(other, target.id));
    }
  });
});

describe("a certificate of another host", () => {
  it("does not pass for a member at its own, and changes nothing over HTTP", async (t) => {
    const net = await network(t, tlsOf(PEER));
    const target = await member(net, 1n, { askMembers: reportsNone });
    target.transport.addPeer(2n, ["https://db2.example:2380"]);
    // It comes from 127.0.0.1, and may: but db2.example is member 2's host.
    const listen = [{ host: "127.0.0.1", port: 0, secure: false }];
    const outsider = await member(net, 2n, { options: { listen } });
    await staysOut(
      net,
      outsider,
      target,
      /the certificate names no host of the member's peer URLs/,
    );
    const [line] = target.logger.find(
      "warn",
      "rejected stream from remote peer because of its certificate",
    );
    assert.equal(line.fields["remote-peer-id"], "2");

    const other = makeCertificate({ name: "app", issuer: CA, ipAddresses: ["127.0.0.2"] });
    const connect = { ca: CA.certPem, cert: other.certPem, key: other.keyPem };
    for (const allowH2 of [false, true]) {
      const dispatcher = new Agent({ connect, allowH2, localAddress: "127.0.0.2" });
      t.after(() => dispatcher.destroy());
      const status = async (method: "GET" | "POST" | "PUT" | "DELETE", path: string) => {
        const { statusCode, body } = await request(target.urls[0] + path, { method, dispatcher });
        await body.dump();
        return statusCode;
      };
      // One that joins asks before all have heard of it.
      assert.equal(await status("GET", "/members"), 200);
      assert.equal(await status("GET", "/members/hashkv"), 403);
      for (const method of ["POST", "PUT", "DELETE"] as const)
        assert.equal(await status(method, "/members/promote/1"), 403, method);
      target.transport.addPeer(3n, ["https://127.0.0.2:2380"]);
      assert.equal(await status("POST", "/members/promote/1"), 200, "now it is a member's");
      target.transport.removePeer(3n);
    }
  });

  it("passes once another member reports that the member is at that host now", async (t) => {
    const net = await network(t, tlsOf(PEER));
    let asked = 0;
    const askMembers: AskMembers = async (_urls, reported) => {
      asked++;
      reported([{ id: 2n, peerUrls: ["https://127.0.0.1:2380"] }]);
    };
    const target = await member(net, 1n, { askMembers });
    target.transport.addPeer(2n, ["https://old.example:2380"]);
    const moved = await member(net, 2n);
    moved.transport.addPeer(1n, target.urls);
    await net.until("it is taken", () => isUp(moved, 1n));
    assert.equal(asked, 1);
  });
});

for (const tls of [undefined, tlsOf(PEER)]) {
  describe(`an unknown process with a member's certificate, ${tls === undefined ? "in plain text" : "over TLS"}`, () => {
    it("is not heard as a member that does not exist, and not dialled", async (t) => {
      const net = await network(t, tls);
      const target = await member(net, 1n, {
        askMembers: async (_urls, reported) =>
          reported([{ id: 7n, peerUrls: ["https://127.0.0.1:1"] }]),
      });
      const outsider = await member(net, 99n);
      await staysOut(net, outsider, target, /error sender not found/);
      await net.until("the log says so", () =>
        target.logger
          .find("warn", "rejected stream from an unknown peer: no member of the cluster knows it")
          .some(({ fields }) => fields["remote-peer-id"] === "63"),
      );
      assert.deepEqual(target.transport.peers(), []);
      assert.equal(target.logger.find("info", "added remote peer").length, 0);
      assert.equal(
        outsider.transport.incomingConnections,
        0,
        "no member dials the URLs that an unknown process names",
      );
    });

    it("costs the others one question in half a second, however many there are", async (t) => {
      const net = await network(t, tls);
      let asked = 0;
      const target = await member(net, 1n, {
        askMembers: async () => {
          asked++;
        },
      });
      const startMs = performance.now();
      const outsiders = await Promise.all(
        Array.from({ length: 8 }, (_, i) => member(net, BigInt(100 + i))),
      );
      for (const outsider of outsiders) outsider.transport.addPeer(1n, target.urls);
      const dials = () =>
        outsiders.reduce(
          (sum, { logger }) => sum + logger.find("warn", "failed to dial remote peer").length,
          0,
        );
      await net.until("all have tried", () => dials() >= outsiders.length);
      await net.until("and again", () => performance.now() - startMs > 1100);
      assert.ok(asked <= 2 + (performance.now() - startMs) / 500, `${asked} questions`);
    });

    it("is heard once others have reported it, and dialled where they say", async (t) => {
      const net = await network(t, tls);
      const added = await member(net, 5n);
      const reported: { id: bigint; peerUrls: readonly string[] }[] = [];
      const target = await member(net, 1n, {
        askMembers: async (_urls, report) => report(reported),
      });
      added.transport.addPeer(1n, target.urls);
      await net.until(
        "it is refused at first",
        () => added.logger.find("warn", "failed to dial remote peer").length > 0,
      );
      reported.push({ id: 5n, peerUrls: added.urls });
      await net.until("it is heard", () => {
        added.transport.send([heartbeat(5n, 1n)]);
        return target.listener.messages.length > 0;
      });
      await net.until("it is answered", () => {
        target.transport.send([heartbeat(1n, 5n)]);
        return added.listener.messages.length > 0;
      });
      assert.deepEqual(
        target.transport.peers(),
        [],
        "it is no peer before this member has applied that",
      );
    });
  });
}

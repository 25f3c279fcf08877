import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Pauses } from "@quorate/host";
import { nodeClock, readRevocations, type TlsOptions } from "@quorate/host/node";
import { RecordingListener } from "@quorate/transport/testing";
import { Agent, request } from "undici";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  makeRevocationList,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type MemberSettings, type RealMember, RealNetwork } from "./helpers/network.ts";

const CA = makeAuthority();
const OTHER_CA = makeAuthority("other-ca");
const PEER = makeLocalCertificate(CA, "peer");

function tls(certificate: TestCertificate, more: Partial<TlsOptions> = {}): TlsOptions {
  return {
    certPem: certificate.certPem,
    keyPem: certificate.keyPem,
    trustedCaPem: CA.certPem,
    clientCertAuth: true,
    ...more,
  };
}

/** Member 1 with its options dials member 2 with its own. */
async function pair(
  t: TestContext,
  mine: TlsOptions | undefined,
  theirs: TlsOptions,
  settings: MemberSettings["options"] = {},
  host = "127.0.0.1",
) {
  const net = new RealNetwork(theirs);
  t.after(() => net.close());
  const listen = [{ host: "127.0.0.1", port: 0, secure: false }];
  const a = await net.start(1n, new RecordingListener(), undefined, {
    options: { tls: mine, listen },
  });
  const b = await net.start(2n, new RecordingListener(), undefined, { options: settings });
  b.transport.addPeer(1n, [`https://${host}:2380`]);
  a.transport.addPeer(2n, b.urls);
  return { net, a, b };
}

async function works({
  net,
  a,
  b,
}: {
  net: RealNetwork;
  a: RealMember;
  b: RealMember;
}): Promise<void> {
  await net.until("messages get through", () => {
    a.transport.send([heartbeat(1n, 2n)]);
    return b.listener.messages.length > 0;
  });
}

/** Nothing gets through, and both sides have said why. */
async function fails(
  { net, a, b }: { net: RealNetwork; a: RealMember; b: RealMember },
  mine: RegExp,
  theirs: RegExp | undefined,
): Promise<void> {
  const errors = (member: RealMember, msg: string) =>
    member.logger.find("warn", msg).map((line) => String(line.fields["error"]));
  await net.until("the dialling side says why", () =>
    errors(a, "failed to dial remote peer").some((error) => mine.test(error)),
  );
  const rejected = "rejected connection on peer endpoint";
  if (theirs !== undefined) {
    await net.until("the other side says why", () =>
      errors(b, rejected).some((error) => theirs.test(error)),
    );
    assert.match(
      String(b.logger.find("warn", rejected)[0].fields["remote-addr"]),
      /^127\.0\.0\.1:\d+$/,
    );
  }
  a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: (async function* () {})() });
  await net.until("a snapshot fails too", () => a.listener.snapshotsSent.length === 1);
  assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: false }]);
  assert.deepEqual([b.listener.messages, b.listener.snapshots], [[], []]);
  assert.equal(a.transport.peers()[0].activeSinceMs, undefined);
}

describe("mutual TLS between members", () => {
  it("takes certificates of the authority", async (t) => {
    await works(await pair(t, tls(PEER), tls(PEER)));
  });

  it("refuses one of another authority, on either side", async (t) => {
    const outsider = makeLocalCertificate(OTHER_CA, "peer");
    const mine = tls(outsider);
    await fails(
      await pair(t, mine, tls(PEER)),
      /connection closed|EOF|unknown/,
      /certificate signed by unknown authority/,
    );
    await fails(
      await pair(t, tls(PEER), tls(outsider)),
      /certificate signed by unknown authority/,
      undefined,
    );
  });

  it("refuses a member without one", async (t) => {
    const without = makeCertificate({ name: "self", ipAddresses: ["127.0.0.1"] });
    await fails(
      await pair(t, tls(without), tls(PEER)),
      /connection closed|EOF|unknown|certificate/,
      /certificate/,
    );
    await fails(await pair(t, undefined, tls(PEER)), /no TLS options/, undefined);
  });

  it("refuses one for another host when dialling, and takes the name that it is reported to expect", async (t) => {
    const elsewhere = makeCertificate({ name: "peer", issuer: CA, dnsNames: ["peer.example"] });
    await fails(await pair(t, tls(PEER), tls(elsewhere)), /does not match|altnames|IP/i, undefined);
    await works(await pair(t, tls(PEER, { serverName: "peer.example" }), tls(elsewhere)));
    await works(await pair(t, tls(PEER, { insecureSkipVerify: true }), tls(elsewhere)));
  });

  it("refuses one that names other addresses than the one it comes from, unless that is not asked for", async (t) => {
    const elsewhere = makeCertificate({ name: "peer", issuer: CA, ipAddresses: ["10.1.2.3"] });
    await fails(
      await pair(t, tls(elsewhere), tls(PEER)),
      /connection closed|EOF/,
      /certificate is valid for 10\.1\.2\.3, not 127\.0\.0\.1/,
    );
    await works(await pair(t, tls(elsewhere), tls(PEER), { skipClientSanVerification: true }));
    const byName = makeCertificate({ name: "peer", issuer: CA, dnsNames: ["localhost"] });
    await works(await pair(t, tls(byName), tls(PEER), {}, "localhost"));
  });

  it("can be bound to common names, which bind both sides", async (t) => {
    const guest = makeLocalCertificate(CA, "guest");
    const bound = { allowedCommonNames: ["peer"] };
    await works(await pair(t, tls(PEER, bound), tls(PEER, bound)));
    await fails(
      await pair(t, tls(guest), tls(PEER, bound)),
      /connection closed|EOF/,
      /^client certificate authentication failed$/,
    );
    await fails(
      await pair(t, tls(PEER, bound), tls(guest)),
      /client certificate authentication failed/,
      undefined,
    );
  });

  it("can be bound to host names", async (t) => {
    const named = makeCertificate({
      name: "x",
      issuer: CA,
      ipAddresses: ["127.0.0.1"],
      dnsNames: ["peer.example"],
    });
    await works(
      await pair(t, tls(named), tls(PEER, { allowedHostnames: ["other.example", "peer.example"] })),
    );
    await fails(
      await pair(t, tls(PEER), tls(PEER, { allowedHostnames: ["peer.example"] })),
      /connection closed|EOF/,
      /^client certificate authentication failed$/,
    );
  });

  it("refuses revoked certificates", async (t) => {
    const { serials: list } = await readRevocations(
      makeRevocationList(CA, [PEER]),
      new Pauses(nodeClock.turns),
    );
    const good = makeLocalCertificate(CA, "peer");
    await works(await pair(t, tls(good), tls(good, { revokedSerials: list })));
    await fails(
      await pair(t, tls(PEER), tls(good, { revokedSerials: list })),
      /connection closed|EOF/,
      /certificate serial [0-9a-f]+ revoked/,
    );
  });

  it("holds for plain HTTP on the peer port too", async (t) => {
    const { b } = await pair(t, tls(PEER), tls(PEER));
    const good = new Agent({
      connect: { ca: CA.certPem, cert: PEER.certPem, key: PEER.keyPem },
      allowH2: false,
    });
    const without = new Agent({ connect: { ca: CA.certPem }, allowH2: false });
    t.after(() => Promise.all([good.destroy(), without.destroy()]));
    assert.equal((await request(`${b.urls[0]}/members`, { dispatcher: good })).statusCode, 404);
    await assert.rejects(request(`${b.urls[0]}/members`, { dispatcher: without }));
  });
});

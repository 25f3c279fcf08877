/**
 * A CA file that holds an intermediate certificate without its root, as Go takes it: each
 * certificate of the file is an anchor. Certificates come without their chain.
 *
 *     root -> intermediate (the CA file) -> leaf of a member, a proxy, a client
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tlsContext } from "@quorate/host";
import { tlsFlags } from "../../scripts/certs.ts";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../support/certs.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { startGrpcProxy } from "../support/grpc-proxy.ts";
import type { TestMember } from "../support/member.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

const root = makeAuthority("root");
const intermediate = makeCertificate({ name: "intermediate", issuer: root, isCa: true });
const server = makeLocalCertificate(intermediate, "server");
const client = makeLocalCertificate(intermediate, "client");
/** A client of the proxies: the cluster must not take its name for a user's. */
const nameless = makeLocalCertificate(intermediate, "");
/** Of the same root, and of no certificate in the file. */
const unknown = makeLocalCertificate(root, "unknown");

describe("a CA file with an intermediate certificate only", () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-chains-"));
  let cluster: TestCluster | undefined;
  let members: readonly TestMember[] = [];
  const ca = join(dir, "ca.pem");
  const files = (name: string, one: TestCertificate): [cert: string, key: string] => {
    writeFileSync(join(dir, `${name}.pem`), one.certPem);
    writeFileSync(join(dir, `${name}-key.pem`), one.keyPem);
    return [join(dir, `${name}.pem`), join(dir, `${name}-key.pem`)];
  };
  const clientFlags = (one: TestCertificate, name: string): string[] => {
    const [cert, key] = files(name, one);
    return [`--cacert=${ca}`, `--cert=${cert}`, `--key=${key}`];
  };

  before(async () => {
    writeFileSync(ca, intermediate.certPem);
    const [cert, key] = files("server", server);
    // A quorum of two: they have met over their peer ports.
    cluster = await startCluster({
      size: 2,
      tls: {
        identity: { ca: intermediate.certPem, cert: client.certPem, key: client.keyPem },
        flagsOf: () =>
          tlsFlags({
            ca,
            server: cert,
            serverKey: key,
            peer: cert,
            peerKey: key,
            peerCa: ca,
          }),
      },
    });
    members = cluster.members;
  });
  after(async () => {
    await cluster?.destroy();
    rmSync(dir, { recursive: true, force: true });
  });

  const endpoints = (): string[] => members.map(({ clientUrl }) => clientUrl);

  test("two members meet; a client with a certificate of it is served", async () => {
    const put = await runQuoratectl(endpoints(), [
      ...clientFlags(client, "client"),
      "put",
      "a",
      "1",
    ]);
    assert.deepEqual([put.code, put.stderr], [0, ""]);
    // After a change of the files as at the start.
    writeFileSync(ca, `${intermediate.certPem}${makeAuthority("another").certPem}`);
    const [first] = members;
    first.signal("SIGHUP");
    await until("the files have been taken", () => /TLS files have changed/.test(first.log()));
    const again = await runQuoratectl(
      [first.clientUrl],
      [...clientFlags(client, "client"), "get", "a", "--print-value-only"],
    );
    assert.deepEqual([again.code, again.stdout], [0, "1\n"]);
    const shown = await runQuoratectl(endpoints(), [...clientFlags(client, "client"), "doctor"]);
    assert.doesNotMatch(shown.stdout + shown.stderr, /does not verify|UNABLE_TO/);
  });

  test("a certificate of the root itself is not: the root is no anchor", async () => {
    const { code, stderr } = await runQuoratectl(endpoints(), [
      "--command-timeout=2s",
      "--dial-timeout=2s",
      ...clientFlags(unknown, "unknown"),
      "get",
      "a",
    ]);
    assert.notEqual(code, 0, stderr);
  });

  test("grpc-proxy: towards the cluster, and for its own clients", async (t) => {
    const [cert, key] = files("nameless", nameless);
    const [ownCert, ownKey] = files("server", server);
    const address = await startGrpcProxy(t, endpoints(), [
      `--cacert=${ca}`,
      `--cert=${cert}`,
      `--key=${key}`,
      `--cert-file=${ownCert}`,
      `--key-file=${ownKey}`,
      `--trusted-ca-file=${ca}`,
    ]);
    const url = `https://${address}`;
    const flags = clientFlags(client, "client");
    const put = await runQuoratectl([url], [...flags, "put", "b", "2"]);
    assert.deepEqual([put.code, put.stderr], [0, ""]);
    const page = await new Promise<number | undefined>((resolve, reject) => {
      const [trusted, own] = [intermediate.certPem, client];
      const options = tlsContext({ trusted, cert: own.certPem, key: own.keyPem });
      request(`${url}/metrics`, { ...options, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    // A page of a member, fetched over HTTPS.
    assert.equal(page, 200);
  });
});

/**
 * A CA file that holds an intermediate certificate without its root is an anchor, for the API
 * server's clients and towards its cluster; see test/e2e/partial-chains.test.ts.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "node:tls";
import { tlsContext } from "@quorate/host";
import { tlsFlags } from "../../../scripts/certs.ts";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../../../test/support/certs.ts";
import { endsWith } from "../../../test/support/children.ts";
import { startCluster } from "../../../test/support/cluster.ts";
import { quorate } from "../../../test/support/executables.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { until } from "../../../test/support/until.ts";

const root = makeAuthority("root");
const intermediate = makeCertificate({ name: "intermediate", issuer: root, isCa: true });
const server = makeLocalCertificate(intermediate, "server");
const client = makeLocalCertificate(intermediate, "client");

const dir = mkdtempSync(join(tmpdir(), "quorate-chains-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const ca = join(dir, "ca.pem");

function files(name: string, one: TestCertificate): [cert: string, key: string] {
  const paths: [string, string] = [join(dir, `${name}.pem`), join(dir, `${name}-key.pem`)];
  writeFileSync(paths[0], one.certPem);
  writeFileSync(paths[1], one.keyPem);
  return paths;
}

test("an API server takes client certificates of an intermediate", async (t) => {
  const [port] = await freePorts(1);
  writeFileSync(ca, intermediate.certPem);
  files("client", client);
  const [cert, key] = files("server", server);
  const cluster = await startCluster({
    size: 1,
    tls: {
      identity: { ca: intermediate.certPem, cert: client.certPem, key: client.keyPem },
      flagsOf: () =>
        tlsFlags({ ca, server: cert, serverKey: key, peer: cert, peerKey: key, peerCa: ca }),
    },
  });
  t.after(() => cluster.destroy());
  const [url] = cluster.endpoints;
  const child = endsWith(
    spawn(
      quorate.command[0],
      [
        ...quorate.command.slice(1),
        "apiserver",
        `--data-dir=${join(dir, "api")}`,
        `--secure-port=${port}`,
        `--client-ca-file=${ca}`,
        `--etcd-servers=${url}`,
        `--etcd-cafile=${ca}`,
        `--etcd-certfile=${join(dir, "client.pem")}`,
        `--etcd-keyfile=${join(dir, "client-key.pem")}`,
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    ),
    t,
  );
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece: Buffer) => (log += piece.toString()));
  await until("the API server runs", () => {
    if (child.exitCode !== null) throw new Error(log);
    return /export KUBECONFIG/.test(log);
  });
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(
      {
        host: "127.0.0.1",
        port,
        rejectUnauthorized: false,
        ...tlsContext({ trusted: undefined, cert: client.certPem, key: client.keyPem }),
      },
      () =>
        socket.write(
          "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nhost: a\r\n" +
            "connection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        ),
    );
    let all = "";
    socket.on("data", (piece: Buffer) => (all += piece.toString()));
    socket.on("end", () => resolve(all));
    socket.on("error", reject);
  });
  assert.match(text, /"username":\s*"client"/);
});

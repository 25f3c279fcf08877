/** The flags of both commands: all of etcd's, and etcd's texts for those that are refused. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Invocation, type Io, runProgram } from "@quorate/cli";
import { checkUpstreamTls, proxyFlags } from "@quorate/proxy/node";
import { createAuthority } from "../../../scripts/certs.ts";
import { skipWithoutEtcd } from "../../../test/support/executables.ts";
import { proxyProgram } from "../node/commands.ts";

const [gateway, grpcProxy] = proxyProgram.groups[0].commands;

for (const command of [gateway, grpcProxy])
  test(`${command.use}: every flag of etcd's`, { skip: skipWithoutEtcd }, () => {
    const name = command.use.split(" ")[0];
    const help = execFileSync("etcd", [name, "start", "--help"], { encoding: "utf8" });
    const etcds = [...help.matchAll(/^ +--([\w-]+)/gm)].map(({ 1: flag }) => flag);
    const ours = Object.keys(command.commands![0].flags!);
    assert.ok(etcds.length > 5);
    assert.deepEqual(
      etcds.filter((flag) => !ours.includes(flag)),
      [],
    );
  });

/** Runs `grpc-proxy start` with a command that only reads the flags. */
async function refusal(...flags: string[]): Promise<string> {
  let text = "";
  const io = { stderr: (line: string) => (text += line), stdout() {}, env: {} } as unknown as Io;
  const start = {
    ...grpcProxy.commands![0],
    run: ({ flags: values }: Invocation) => {
      try {
        checkUpstreamTls(proxyFlags(values).upstreamTls);
      } catch (error) {
        text = (error as Error).message;
      }
    },
  };
  const groups = [{ title: "x", commands: [{ ...grpcProxy, commands: [start] }] }];
  await runProgram({ ...proxyProgram, groups }, ["grpc-proxy", "start", ...flags], io);
  return text;
}

const REFUSED: readonly (readonly [flags: string[], text: RegExp])[] = [
  [[], /^$/],
  [["--resolver-prefix=/p"], /^invalid resolver-ttl 0$/],
  [["--resolver-ttl=5"], /^invalid resolver-prefix ""$/],
  [
    ["--resolver-prefix=/p", "--resolver-ttl=5", "--advertise-client-url="],
    /^invalid advertise-client-url ""$/,
  ],
  [
    ["--auto-tls", "--self-signed-cert-validity=0"],
    /^selfSignedCertValidity is invalid,it should be greater than 0$/,
  ],
  [["--tls-min-version=TLS1.1"], /^tls-min-version is invalid: unexpected TLS version "TLS1.1"$/],
  [
    ["--tls-min-version=TLS1.3", "--tls-max-version=TLS1.2"],
    /^min version \(TLS1.3\) is greater than max version \(TLS1.2\)$/,
  ],
  [
    ["--tls-min-version=TLS1.3", "--listen-cipher-suites=TLS_AES_128_GCM_SHA256"],
    /^cipher suites cannot be configured when only TLS1.3 is enabled$/,
  ],
  [["--listen-cipher-suites=NONE"], /^unexpected TLS cipher suite "NONE"$/],
  [["--experimental-leasing-prefix=x"], /is not offered: .* not linearizable/],
  [["--listen-addr=x"], /^listen tcp: address x: invalid$/],
  [["--max-send-bytes=-1"], /^--max-send-bytes is -1; it must be from 0 to 2147483647$/],
  [["--cert=a.pem"], /^KeyFile and CertFile must both be present\[key: , cert: a.pem\]$/],
  [["--cacert=/not/there"], /no such file/],
  [["--nonsense"], /unknown flag: --nonsense/],
  [["--resolver-ttl=x"], /invalid argument "x" for "--resolver-ttl" flag/],
];

test("flags that are refused, with etcd's texts", async () => {
  for (const [flags, text] of REFUSED) assert.match(await refusal(...flags), text);
});

test("a client certificate with a common name would be the user of every client", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-proxy-flags-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const authority = await createAuthority("ca");
  const { certPem, keyPem } = await authority.issue({
    commonName: "root",
    hosts: ["localhost"],
    usage: "both",
  });
  const [cert, key] = [join(dir, "c.pem"), join(dir, "k.pem")];
  writeFileSync(cert, certPem);
  writeFileSync(key, keyPem);
  assert.equal(
    await refusal(`--cert=${cert}`, `--key=${key}`),
    `cert has non empty Common Name (root): ${cert}`,
  );
});

test("a gateway that is an endpoint of itself is refused", async () => {
  for (const own of ["127.0.0.1:23792", "localhost:23792", "http://127.0.0.1:23792"]) {
    let text = "";
    const note = (line: string) => (text += line);
    const io = { stderr: note, stdout: note, env: {} } as unknown as Io;
    const flags = ["--listen-addr=127.0.0.1:23792", `--endpoints=127.0.0.9:1,${own}`];
    assert.equal(await runProgram(proxyProgram, ["gateway", "start", ...flags], io), 1);
    assert.match(text, /should not resolve to the gateway listen addr \(127\.0\.0\.1:23792\)/);
  }
});

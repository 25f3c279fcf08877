import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { transportContract } from "@quorate/transport/testing";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { RealNetwork } from "./helpers/network.ts";

transportContract("HTTP/2 in plain text", async () => new RealNetwork());

const CA = makeAuthority();
const PEER = makeLocalCertificate(CA, "peer");
const TLS = {
  certPem: PEER.certPem,
  keyPem: PEER.keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
};

transportContract("HTTP/2 over mutual TLS", async () => new RealNetwork(TLS));

transportContract("etcd's protocol", async () => new RealNetwork(undefined, undefined, true));

transportContract(
  "etcd's protocol over mutual TLS",
  async () => new RealNetwork(TLS, undefined, true),
);

const directories: string[] = [];
after(() => {
  for (const directory of directories) rmSync(directory, { recursive: true });
});

transportContract("unix sockets with mutual TLS", async () => {
  const directory = mkdtempSync(join(tmpdir(), "quorate-unix-"));
  directories.push(directory);
  return new RealNetwork({ ...TLS, serverName: "localhost" }, directory);
});

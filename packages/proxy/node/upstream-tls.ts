/** TLS of the proxy towards the cluster (etcd: client/pkg/transport, ClientConfig). */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { FlagRefusal } from "@quorate/cli";
import { clientTlsOptions, commonName } from "@quorate/host/node";
import { splitAddress } from "@quorate/rpc/node";
import type { TlsFlags } from "./proxy-flags.ts";

export interface UpstreamTlsFlags extends TlsFlags {
  readonly skipsVerification: boolean;
}

/** Whether any flag asks for TLS. */
export function hasTlsFlags({ certFile, keyFile, caFile, skipsVerification }: UpstreamTlsFlags) {
  return certFile !== "" || keyFile !== "" || caFile !== "" || skipsVerification;
}

/**
 * Checks the files at the start: they can be read, and the certificate has no common name, because
 * the cluster would take it for a user on every call of every client. Throws FlagRefusal.
 */
export function checkUpstreamTls(flags: UpstreamTlsFlags): void {
  const { certFile, keyFile, caFile } = flags;
  if ((certFile === "") !== (keyFile === ""))
    throw new FlagRefusal(
      `KeyFile and CertFile must both be present[key: ${keyFile}, cert: ${certFile}]`,
    );
  try {
    if (caFile !== "") readFileSync(caFile);
    if (certFile === "") return;
    readFileSync(keyFile);
    const name = commonName(new X509Certificate(readFileSync(certFile)));
    if (name !== "") throw new FlagRefusal(`cert has non empty Common Name (${name}): ${certFile}`);
  } catch (error) {
    throw error instanceof FlagRefusal ? error : new FlagRefusal((error as Error).message);
  }
}

/** Options of a dial to an address, with the files as they are now. Throws Node's errors. */
export function upstreamTls(flags: UpstreamTlsFlags, address: string): ConnectionOptions {
  const { certFile, keyFile, caFile, skipsVerification } = flags;
  const host = address.startsWith("unix:") ? "localhost" : splitAddress(address).host;
  const text = (path: string) => (path === "" ? undefined : readFileSync(path, "utf8"));
  const [certPem, keyPem, trustedCaPem] = [certFile, keyFile, caFile].map(text);
  return clientTlsOptions(
    { certPem, keyPem, trustedCaPem, insecureSkipVerify: skipsVerification },
    host,
    ["h2"],
  );
}

/** A kubeconfig with everything inline (client-go: tools/clientcmd/api/v1). */
import { writeFileSync } from "node:fs";
import type { Pair } from "./certificates.ts";

const NAME = "quorate";

export interface KubeconfigParts {
  readonly url: string;
  readonly caPem: string;
  /** A certificate, or a token. */
  readonly user: Pair | { readonly token: string };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The text of the file: JSON, which every reader of YAML takes. */
export function kubeconfigText({ url, caPem, user }: KubeconfigParts): string {
  const credentials =
    "token" in user
      ? { token: user.token }
      : {
          "client-certificate-data": base64(user.certPem),
          "client-key-data": base64(user.keyPem),
        };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: NAME, cluster: { server: url, "certificate-authority-data": base64(caPem) } },
    ],
    users: [{ name: "admin", user: credentials }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: "admin" } }],
    "current-context": NAME,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** Writes the file for its owner alone. Throws Node's errors, which name the path. */
export function writeKubeconfig(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}

/** The files and flags that every kube-apiserver of tests and comparisons starts with. */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes the key of service accounts, and the token of a user in system:masters. */
export function writeKubeApiFiles(dir: string, user: string, token: string): void {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(join(dir, "sa.key"), privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(join(dir, "tokens.csv"), `${token},${user},1,"system:masters"\n`);
}

/** Flags that `quorate apiserver` has too. @param dir where writeKubeApiFiles has written */
export function sharedKubeApiFlags(dir: string, etcd: string, port: number): string[] {
  return [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    "--bind-address=127.0.0.1",
    `--token-auth-file=${join(dir, "tokens.csv")}`,
    "--authorization-mode=RBAC",
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(dir, "sa.key")}`,
    `--service-account-signing-key-file=${join(dir, "sa.key")}`,
  ];
}

/** All flags that kube-apiserver needs. */
export function kubeApiFlags(dir: string, etcd: string, port: number): string[] {
  return [
    ...sharedKubeApiFlags(dir, etcd, port),
    `--cert-dir=${join(dir, "certs")}`,
    "--service-cluster-ip-range=10.0.0.0/24",
  ];
}

/**
 * How the API server is reached: by the service account of the operator's own pod, or by a
 * kubeconfig with certificates or a token. Plugins for credentials are not run.
 */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type KubeAccess, kubeAccessOf } from "@quorate/kube-storage";
import { load } from "js-yaml";

const POD = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws Node's errors, and Error with what is missing. */
export function kubeAccess(
  kubeconfig: string,
  env: Readonly<Record<string, string | undefined>>,
): KubeAccess {
  if (kubeconfig !== "") return fromFile(kubeconfig);
  const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]];
  if (host === undefined || port === undefined)
    throw new Error("this is no pod of Kubernetes: --kubeconfig is needed");
  return {
    url: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    trusted: readFileSync(`${POD}/ca.crt`, "utf8"),
    cert: undefined,
    key: undefined,
    serverName: undefined,
    isInsecure: false,
    // Read for each request: the token in a pod is renewed.
    authorization: () => `Bearer ${readFileSync(`${POD}/token`, "utf8").trim()}`,
    namespace: readFileSync(`${POD}/namespace`, "utf8").trim(),
  };
}

function fromFile(path: string): KubeAccess {
  const read = (file: string): string => readFileSync(resolve(dirname(path), file), "utf8");
  return kubeAccessOf(load(readFileSync(path, "utf8")), path, read);
}

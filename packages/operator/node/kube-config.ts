/**
 * How the API server is reached: by the service account of the operator's own pod, or by a
 * kubeconfig with certificates or a token. Plugins for credentials are not run.
 */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { load } from "js-yaml";

export interface KubeAccess {
  /** Such as "https://10.0.0.1:443". */
  readonly url: string;
  /** PEM; undefined for the system's authorities. */
  readonly trusted: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Read for each request: the token in a pod is renewed. */
  token(): string | undefined;
  /** The namespace of the pod or the context. */
  readonly namespace: string;
}

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
    token: () => readFileSync(`${POD}/token`, "utf8").trim(),
    namespace: readFileSync(`${POD}/namespace`, "utf8").trim(),
  };
}

type Fields = Readonly<Record<string, string | undefined>>;
interface Kubeconfig {
  readonly "current-context"?: string;
  readonly contexts?: readonly { readonly name: string; readonly context: Fields }[];
  readonly clusters?: readonly { readonly name: string; readonly cluster: Fields }[];
  readonly users?: readonly { readonly name: string; readonly user: Fields }[];
}

function fromFile(path: string): KubeAccess {
  const config = load(readFileSync(path, "utf8")) as Kubeconfig;
  const named = <T extends { readonly name: string }>(list: readonly T[] = [], name?: string) => {
    const found = list.find((one) => one.name === name);
    if (found === undefined) throw new Error(`${path}: there is no ${name}`);
    return found;
  };
  const { context } = named(config.contexts, config["current-context"]);
  const { cluster } = named(config.clusters, context["cluster"]);
  const { user } = named(config.users, context["user"]);
  if (user["exec"] !== undefined || user["auth-provider"] !== undefined)
    throw new Error(`${path}: plugins for credentials are not run: use a certificate or a token`);
  const pem = (from: Fields, field: string): string | undefined => {
    const inline = from[`${field}-data`];
    if (inline !== undefined) return Buffer.from(inline, "base64").toString();
    const file = from[field];
    return file === undefined ? undefined : readFileSync(resolve(dirname(path), file), "utf8");
  };
  const { server } = cluster;
  if (server === undefined) throw new Error(`${path}: the cluster has no server`);
  const { token, tokenFile } = user;
  return {
    url: server.replace(/\/$/, ""),
    trusted: pem(cluster, "certificate-authority"),
    cert: pem(user, "client-certificate"),
    key: pem(user, "client-key"),
    token: () => token ?? (tokenFile === undefined ? undefined : readFileSync(tokenFile, "utf8")),
    namespace: context["namespace"] ?? "default",
  };
}

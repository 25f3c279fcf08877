/** What the walk needs of an API server: ours in this process, or Kubernetes' own over a member. */
import { spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { tlsContext } from "@quorate/host";
import { type RunningApiServer, startApiServer } from "@quorate/kube-apiserver/node";
import { Agent, request } from "undici";
import { makeCertificate } from "../../../../test/support/certs.ts";
import { endsWithUs } from "../../../../test/support/children.ts";
import { startCluster } from "../../../../test/support/cluster.ts";
import { findProgram } from "../../../../test/support/executables.ts";
import { until } from "../../../../test/support/until.ts";
import { kubeconfigText } from "../../node/kubeconfig.ts";
import { kubeApiFlags, writeKubeApiFiles } from "../support/kube-flags.ts";

const PORT = 6443;
const ADMIN_TOKEN = "admin-token";

export interface WalkApi extends Pick<RunningApiServer, "request" | "kubeconfigFor" | "stop"> {
  /** Puts a pod on a node, as a scheduler does. */
  assign(namespace: string, pod: string): Promise<void>;
}

/** Our API server. */
export async function startOurs(dataDir: string, address: string): Promise<WalkApi> {
  const api = await startApiServer({ bindAddress: address, hosts: [address], dataDir });
  return {
    request: api.request,
    kubeconfigFor: api.kubeconfigFor,
    stop: api.stop,
    async assign(namespace, pod) {
      await api.request(`/api/v1/namespaces/${namespace}/pods/${pod}`, {
        method: "PATCH",
        body: { spec: { nodeName: "here" } },
        contentType: "application/merge-patch+json",
      });
    },
  };
}

/**
 * kube-apiserver, with a member of ours as its store. What Kubernetes' controllers would have to
 * finish is off: tokens of service accounts, and claims that wait until no pod uses them.
 * @param account the only user besides the admin
 */
export async function startKubernetes(
  dir: string,
  address: string,
  account: string,
): Promise<WalkApi> {
  const program = findProgram("kube-apiserver");
  if (program === undefined) throw new Error("kube-apiserver is not on PATH");
  mkdirSync(dir, { recursive: true });
  const store = await startCluster({ size: 1 });
  writeKubeApiFiles(dir, "admin", ADMIN_TOKEN);
  const accountToken = "account-token";
  writeFileSync(join(dir, "tokens.csv"), `${accountToken},${account},2\n`, { flag: "a" });
  const { certPem, keyPem } = makeCertificate({ name: "kubernetes", ipAddresses: [address] });
  const [cert, key] = [join(dir, "tls.crt"), join(dir, "tls.key")];
  writeFileSync(cert, certPem);
  writeFileSync(key, keyPem);
  const flags = [
    ...kubeApiFlags(dir, store.endpoints[0]!, PORT),
    `--bind-address=${address}`,
    `--advertise-address=${address}`,
    `--tls-cert-file=${cert}`,
    `--tls-private-key-file=${key}`,
    "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection",
  ];
  const logFile = join(dir, "kube-apiserver.log");
  const log = openSync(logFile, "w");
  const child = spawn(program, flags, { stdio: ["ignore", log, log] });
  endsWithUs(child);
  const agent = new Agent({ connect: tlsContext({ trusted: certPem }) });
  const url = `https://${address}:${PORT}`;
  const ask: WalkApi["request"] = async (path, { method, body, contentType } = {}) => {
    const response = await request(url + path, {
      method: (method ?? (body === undefined ? "GET" : "POST")) as "GET",
      body: body === undefined ? null : JSON.stringify(body),
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
      },
      dispatcher: agent,
    });
    const text = await response.body.text();
    return { status: response.statusCode, body: text.startsWith("{") ? JSON.parse(text) : text };
  };
  await until(
    "kube-apiserver is ready",
    async () => {
      if (child.exitCode !== null) throw new Error(readFileSync(logFile, "utf8").slice(-2000));
      const answer = await ask("/readyz").catch(() => undefined);
      return answer?.status === 200;
    },
    500,
  );
  return {
    request: ask,
    kubeconfigFor: async () =>
      kubeconfigText({ url, caPem: certPem, user: { token: accountToken } }),
    async stop() {
      child.kill("SIGKILL");
      await agent.close();
      await delay(100);
      await store.destroy();
    },
    async assign(namespace, name) {
      const body = {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name },
        target: { apiVersion: "v1", kind: "Node", name: "here" },
      };
      const { status } = await ask(`/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
        body,
      });
      if (status >= 300 && status !== 409) throw new Error(`binding of ${name}: ${status}`);
    },
  };
}

/**
 * Starts an API server: its store, its certificates, its port.
 *
 *     await using api = await startApiServer();
 *     run("kubectl", "--kubeconfig", api.kubeconfigPath, "get", "namespaces");
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@quorate/client";
import { type Logger, silentLogger } from "@quorate/host";
import { nodeClock, nodeRandom } from "@quorate/host/node";
import { EngineServer } from "@quorate/rpc/node";
import { RequestAuthenticator } from "../src/authn/request-authenticator.ts";
import { ControlPlane } from "../src/server/control-plane.ts";
import { identityTransformer } from "../src/encryption/prefix-transformers.ts";
import { ownCertificates } from "./certificates.ts";
import { LibraryCluster } from "./cluster.ts";
import { startEmbeddedMember } from "./embedded-member.ts";
import { gzipCompressor } from "./gzip.ts";
import { kubeconfigText, writeKubeconfig } from "./kubeconfig.ts";
import { versionDocument } from "./version.ts";

/** How long requests in flight may take when the server stops. */
const GRACE_MS = 5000;
const READY_TIMEOUT_MS = 30_000;

export interface StartOptions {
  /** Where data and certificates are; absent: a temporary directory, removed at the end. */
  readonly dataDir?: string;
  /** Port to listen on; absent or 0: a free one. */
  readonly port?: number;
  readonly logger?: Logger;
}

/** A server that runs. */
export interface RunningApiServer extends AsyncDisposable {
  readonly url: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  /** The text of a kubeconfig of the group system:masters, and a file with it. */
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  stop(): Promise<void>;
}

export async function startApiServer(options: StartOptions = {}): Promise<RunningApiServer> {
  const logger = options.logger ?? silentLogger;
  const dir = options.dataDir ?? mkdtempSync(join(tmpdir(), "quorate-api-"));
  const hosts = ["127.0.0.1", "localhost", "::1", "kubernetes", "kubernetes.default"];
  const [member, certificates] = await Promise.all([
    startEmbeddedMember({
      dataDir: join(dir, "etcd"),
      flags: [],
      logger: logger.child("etcd"),
      onEnd: (error) => logger.error("the embedded member has ended", { error: String(error) }),
    }),
    ownCertificates(join(dir, "pki"), hosts, nodeClock.wallMs()),
  ]);
  const client = connect({ endpoints: [member.endpoint] });
  const plane = new ControlPlane(
    {
      ...{ etcdPrefix: "/registry", watchCache: true, minWatchMs: 1_800_000 },
      ...{ requestTimeoutMs: 60_000, maxInFlight: 600, version: versionDocument() },
    },
    {
      cluster: new LibraryCluster(client),
      clock: nodeClock,
      random: nodeRandom(),
      logger,
      newCompressor: gzipCompressor,
      authenticator: new RequestAuthenticator(
        { clientCertificates: true, tokens: undefined, audiences: [], allowAnonymous: true },
        { logger, monotonicMs: () => nodeClock.monotonicMs() },
      ),
      authorizer: { authorize: async () => ({ decision: "allow", reason: "" }) },
      admission: { mutate: async ({ object }) => object, validate: async () => {} },
      transformerOf: () => identityTransformer,
      pages: new Map(),
    },
  );
  const { ca, server: pair, admin } = certificates;
  const engine = new EngineServer(
    {
      tls: { ...pair, trustedCaPem: ca.certPem, clientCertOptional: true },
      listen: [{ host: "127.0.0.1", port: options.port ?? 0, secure: true, serves: "all" }],
    },
    {
      services: { unary: new Map(), stream: new Map() },
      http: plane.server.handle,
      clock: nodeClock,
      logger: logger.child("rpc"),
    },
  );
  await plane.ready(nodeClock, READY_TIMEOUT_MS);
  const [bound] = await engine.listen();
  const url = `https://127.0.0.1:${bound.port}`;
  const kubeconfig = kubeconfigText({ url, caPem: ca.certPem, user: admin });
  const kubeconfigPath = join(dir, "admin.kubeconfig");
  writeKubeconfig(kubeconfigPath, kubeconfig);
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    plane.beginStop();
    await engine.close(GRACE_MS);
    await plane.close();
    client.close();
    await member.stop();
    if (options.dataDir === undefined) rmSync(dir, { recursive: true, force: true });
  };
  return {
    ...{ url, ca: ca.certPem, kubeconfig, kubeconfigPath },
    stop: () => (stopping ??= stop()),
    [Symbol.asyncDispose]: () => (stopping ??= stop()),
  };
}

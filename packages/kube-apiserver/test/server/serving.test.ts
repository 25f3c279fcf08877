import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { type Program, processIo, runProgram } from "@quorate/cli";
import { Agent, request } from "undici";
import { absentPath } from "../../../../test/support/absent.ts";
import { makeAuthority, makeLocalCertificate } from "../../../../test/support/certs.ts";
import { optionsOf } from "../../node/flag-options.ts";
import { API_SERVER_FLAGS } from "../../node/flags.ts";
import type { ServeOptions } from "../../node/serve-options.ts";
import { type RunningApiServer, startApiServer } from "../../node/start.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

interface Kubeconfig {
  readonly users: readonly {
    readonly user: Readonly<Record<`client-${"certificate" | "key"}-data`, string>>;
  }[];
}

/** The certificate and key of a kubeconfig. */
function pairOf(kubeconfig: string): { readonly cert: string; readonly key: string } {
  const { user } = (JSON.parse(kubeconfig) as Kubeconfig).users[0];
  const text = (name: keyof typeof user) => Buffer.from(user[name], "base64").toString();
  return { cert: text("client-certificate-data"), key: text("client-key-data") };
}

let api: RunningApiServer;
before(async () => {
  api = await startApiServer();
});
after(() => api.stop());

async function as(
  pair: { readonly cert?: string; readonly key?: string },
  path: string,
): Promise<{ status: number; text: string }> {
  const dispatcher = new Agent({ connect: { ca: api.ca, ...pair } });
  try {
    const { statusCode, body } = await request(`${api.url}${path}`, { dispatcher });
    return { status: statusCode, text: await body.text() };
  } finally {
    await dispatcher.close();
  }
}

describe("a server on sockets", () => {
  it("is ready when it has started, with its namespaces and roles", async () => {
    assert.equal((await api.request("/readyz")).body, "ok");
    const namespaces = await api.request("/api/v1/namespaces");
    const names = namespaces.body.items.map(
      ({ metadata }: { metadata: { name: string } }) => metadata.name,
    );
    assert.deepEqual(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert.equal(statSync(api.kubeconfigPath).mode & 0o777, 0o600);
  });

  it("is found by the Service kubernetes", async () => {
    const at = async (path: string) => (await api.request(path)).body;
    const { port } = new URL(api.url);
    const service = await at("/api/v1/namespaces/default/services/kubernetes");
    assert.equal(service.spec.clusterIP, "10.0.0.1");
    assert.deepEqual(service.spec.ports, [
      { name: "https", protocol: "TCP", port: 443, targetPort: Number(port) },
    ]);
    const ports = [{ name: "https", port: Number(port), protocol: "TCP" }];
    const endpoints = await at("/api/v1/namespaces/default/endpoints/kubernetes");
    assert.deepEqual(endpoints.subsets, [{ addresses: [{ ip: "127.0.0.1" }], ports }]);
    const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    const slice = await at(`${slices}/kubernetes`);
    assert.deepEqual(slice.endpoints, [{ addresses: ["127.0.0.1"], conditions: { ready: true } }]);
    assert.deepEqual([slice.addressType, slice.ports], ["IPv4", ports]);
  });

  it("knows users and groups by client certificates", async () => {
    const admins = pairOf(await api.kubeconfigFor("jane", ["dev", "system:masters"]));
    assert.equal((await as(admins, CONFIG_MAPS)).status, 200);
    const jane = pairOf(await api.kubeconfigFor("jane", ["dev"]));
    const refused = await as(jane, CONFIG_MAPS);
    assert.equal(refused.status, 403);
    assert.match(JSON.parse(refused.text).message, /User "jane" cannot list resource "configmaps"/);
    assert.equal((await as({}, CONFIG_MAPS)).status, 403);
    assert.equal((await as({}, "/readyz")).status, 200);
    const other = makeLocalCertificate(makeAuthority("other"), "kubernetes-admin");
    const unknown = await as({ cert: other.certPem, key: other.keyPem }, CONFIG_MAPS);
    assert.equal(unknown.status, 401);
  });

  it("serves HTTP/2 as HTTP/1.1, and compresses outside of the event loop", async () => {
    for (let i = 0; i < 3; i++) {
      const metadata = { name: `large-${i}` };
      const body = { kind: "ConfigMap", metadata, data: { k: "x".repeat(80_000) } };
      assert.equal((await api.request(CONFIG_MAPS, { body })).status, 201);
    }
    const session = connectHttp2(api.url, { ca: api.ca, ...pairOf(api.kubeconfig) });
    const stream = session.request({ ":path": CONFIG_MAPS, "accept-encoding": "gzip" });
    const encoding = await new Promise((resolve) =>
      stream.on("response", (headers) => resolve(headers["content-encoding"])),
    );
    assert.equal(encoding, "gzip");
    stream.resume();
    await new Promise((resolve) => stream.on("end", resolve));
    session.close();
  });

  it("has kube-apiserver's metrics", async () => {
    const { body, status } = await api.request("/metrics");
    assert.equal(status, 200);
    for (const name of [
      "apiserver_request_total",
      "apiserver_request_duration_seconds_bucket",
      "apiserver_current_inflight_requests",
      'apiserver_storage_objects{resource="configmaps"}',
      'etcd_request_duration_seconds_count{operation="put"}',
      'watch_cache_capacity{group="",resource="configmaps"}',
      "process_cpu_seconds_total",
    ])
      assert.ok(body.includes(name), name);
  });

  it("survives clients that stop in the middle, send garbage, or send too much", async () => {
    const { port } = new URL(api.url);
    const options = { port: Number(port), host: "127.0.0.1", ca: api.ca };
    for (const text of [
      `POST ${CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`,
      "GET /api/v1/name",
      "\0\x01garbage\r\n\r\n",
    ]) {
      const socket = connectTls({ ...options, ...pairOf(api.kubeconfig) });
      await new Promise((resolve) => socket.once("secureConnect", resolve));
      socket.on("error", () => {});
      await new Promise((resolve) => socket.write(text, resolve));
      socket.destroy();
    }
    const huge = await api.request(CONFIG_MAPS, { body: { data: { k: "x".repeat(4_000_000) } } });
    assert.equal(huge.status, 413);
    assert.equal((await api.request("/livez")).body, "ok");
  });

  it("removes its temporary directory, and keeps a given one with its data", async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "quorate-api-test-"));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const first = await startApiServer({ dataDir: dir });
    const body = { kind: "ConfigMap", metadata: { name: "kept" } };
    assert.equal((await first.request(CONFIG_MAPS, { body })).status, 201);
    await first.stop();
    const second = await startApiServer({ dataDir: dir });
    assert.equal(second.ca, first.ca);
    assert.equal((await second.request(`${CONFIG_MAPS}/kept`)).status, 200);
    await second.stop();
    assert.ok(existsSync(second.kubeconfigPath));
    const temporary = await startApiServer();
    await temporary.stop();
    assert.equal(existsSync(dirname(temporary.kubeconfigPath)), false);
  });

  it("says what is wrong with its options", async () => {
    await assert.rejects(startApiServer({ encryptionConfigFile: absentPath() }), /quorate-absent-/);
    const port = Number(new URL(api.url).port);
    await assert.rejects(startApiServer({ port }), /EADDRINUSE/);
  });
});

describe("flags", () => {
  /** Parses a command line with these flags, as the program does. */
  async function options(given: Record<string, string>): Promise<ServeOptions> {
    let result: ServeOptions | Error | undefined;
    const program: Program = {
      name: "quorate",
      short: "",
      globals: {},
      groups: [
        {
          title: "",
          commands: [
            {
              use: "apiserver",
              short: "",
              flags: API_SERVER_FLAGS,
              run: ({ flags }) => {
                try {
                  result = optionsOf(flags);
                } catch (error) {
                  result = error as Error;
                }
              },
            },
          ],
        },
      ],
    };
    const line = Object.entries(given).map(([name, text]) => `--${name}=${text}`);
    await runProgram(program, ["apiserver", ...line], processIo);
    assert.ok(result !== undefined);
    if (result instanceof Error) throw result;
    return result;
  }

  it("of kube-apiserver that concern what is not here have no effect; what is always on stays", async () => {
    const dir = mkdtempSync(join(tmpdir(), "quorate-cert-dir-"));
    try {
      const given = { "cert-dir": dir, "allow-privileged": "true", "storage-backend": "etcd3" };
      const first = await options({ ...given, "disable-admission-plugins": "ServiceAccount" });
      assert.deepEqual([first.tls, first.dataDir], [undefined, join(dir, "quorate")]);
      for (const name of ["apiserver.crt", "apiserver.key"]) writeFileSync(join(dir, name), "");
      const second = await options({ ...given, "data-dir": "own" });
      assert.deepEqual([second.tls?.certFile, second.dataDir], [join(dir, "apiserver.crt"), "own"]);
      await assert.rejects(
        options({ "disable-admission-plugins": "NamespaceLifecycle" }),
        /NamespaceLifecycle, which is always on/,
      );
      const { plugins } = await options({
        ...given,
        "enable-admission-plugins":
          "OwnerReferencesPermissionEnforcement,Priority,ValidatingAdmissionPolicy,CertificateSigning",
        "disable-admission-plugins": "Priority,LimitRanger,MutatingAdmissionPolicy",
      });
      assert.deepEqual(
        [...plugins],
        [
          "ServiceAccount",
          "TaintNodesByCondition",
          "RuntimeClass",
          "CertificateSubjectRestriction",
          "ValidatingAdmissionPolicy",
          "ResourceQuota",
          "OwnerReferencesPermissionEnforcement",
        ],
      );
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it("become options", async () => {
    const { port, etcd, maxInFlight, requestTimeoutMs, webhookServices } = await options({
      "etcd-servers": "http://a:1,http://b:2",
      "request-timeout": "10s",
      "webhook-service": "hook.system=127.0.0.1:9443",
    });
    assert.deepEqual([port, maxInFlight, requestTimeoutMs], [6443, 600, 10_000]);
    assert.deepEqual(etcd?.servers, ["http://a:1", "http://b:2"]);
    assert.equal(webhookServices.get("hook.system"), "127.0.0.1:9443");
    const more = await options({
      "etcd-servers": "http://a:1",
      "etcd-servers-overrides": "/events#https://b:1;https://c:1,apps/deployments#http://d:1",
      "service-cluster-ip-range": "fd00:1::/112",
    });
    assert.deepEqual(more.etcd?.overrides, [
      { group: "", resource: "events", servers: ["https://b:1", "https://c:1"] },
      { group: "apps", resource: "deployments", servers: ["http://d:1"] },
    ]);
    assert.deepEqual(more.serviceRanges, ["fd00:1::/112"]);
  });

  it("choose controllers as those of kube-controller-manager", async () => {
    const chosen = async (controllers: string) => (await options({ controllers })).controllers;
    assert.equal((await options({})).controllers.length, 8);
    assert.deepEqual(await chosen(""), []);
    assert.deepEqual(await chosen("namespace-controller"), ["namespace-controller"]);
    const most = await chosen(
      "*,-garbage-collector-controller,-clusterrole-aggregation-controller",
    );
    assert.deepEqual(most, [
      "namespace-controller",
      "resourcequota-controller",
      "root-ca-certificate-publisher-controller",
      "service-cidr-controller",
      "serviceaccount-controller",
      "validatingadmissionpolicy-status-controller",
    ]);
  });

  const REFUSED: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ "secure-port": "70000" }, /--secure-port is 70000; it must be from 0 to 65535/],
    [{ embedded: "false" }, /needs --etcd-servers/],
    [{ embedded: "true", "etcd-servers": "x" }, /exclude each other/],
    [{ "etcd-cafile": "x" }, /need --etcd-servers/],
    [{ "etcd-servers-overrides": "/events#http://b:1" }, /needs --etcd-servers/],
    [
      { "etcd-servers": "http://a:1", "etcd-servers-overrides": "events#http://b:1" },
      /must be of format: group\/resource#servers/,
    ],
    [{ "service-cluster-ip-range": "10.0.0.1" }, /it must be ADDRESS\/BITS/],
    [{ "service-cluster-ip-range": "10.0.0.1/32" }, /with addresses to give/],
    [{ "service-cluster-ip-range": "fd00::/48" }, /it must be ADDRESS\/BITS/],
    [{ "service-cluster-ip-range": "10.0.0.0/24,10.1.0.0/24" }, /must be of different IP family/],
    [{ "service-cluster-ip-range": "10.0.0.0/24,fd00::/112,10.1.0.0/24" }, /than two entries/],
    [{ "service-node-port-range": "32767-30000" }, /it must be FIRST-LAST/],
    [{ "service-node-port-range": "0-5" }, /it must be FIRST-LAST/],
    [{ controllers: "gc" }, /--controllers has "gc"; known: clusterrole-aggregation-controller/],
    [{ "etcd-servers": "x", "etcd-certfile": "x" }, /need each other/],
    [{ "tls-cert-file": "x" }, /need each other/],
    [{ "storage-media-type": "text" }, /it must be application\/json or/],
    [{ "authorization-mode": "Node" }, /known modes: AlwaysAllow, AlwaysDeny, RBAC/],
    [{ "enable-admission-plugins": "X" }, /known: NamespaceLifecycle/],
    [{ "request-timeout": "0s" }, /must be longer than 0/],
    [{ "webhook-service": "x" }, /must be name\.namespace=host:port/],
    [{ "data-dir": "" }, /--data-dir must not be empty/],
  ];
  for (const [given, message] of REFUSED)
    it(`are refused: ${JSON.stringify(given)}`, async () => {
      await assert.rejects(options(given), { message });
    });
});

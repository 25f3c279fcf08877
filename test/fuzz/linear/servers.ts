/**
 * The servers under attack, each a process: a member with users (client, metrics and peer port), a
 * member with signed tokens and TLS, the two proxies before them, and an API server.
 */
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { writeCertificates } from "../../../scripts/certs.ts";
import { endsWithUs } from "../../support/children.ts";
import { freePorts } from "../../support/ports.ts";
import type { Target, Victims } from "./attack.ts";
import {
  apiShapes,
  memberShapes,
  metricsShapes,
  peerShapes,
  type Shape,
  widgetDefinition,
} from "./shapes.ts";

const PROGRAM = join(import.meta.dirname, "../../../bin/quorate.js");
const START_LIMIT_MS = 180_000;
const ADMIN_TOKEN = "attack-token";

interface Process {
  readonly pid: number;
  readonly isGone: () => boolean;
  kill(): Promise<void>;
}

function start(args: readonly string[], logFile: string): Process {
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", log, log] });
  closeSync(log);
  endsWithUs(child);
  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid!,
    isGone,
    async kill() {
      if (isGone()) return;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Names of ports and what is sent to each; the same in every run. */
export function allShapes(): Shape[] {
  return [
    ...memberShapes("client", {}),
    ...memberShapes("client as root", { authorization: "@ROOT@" }),
    ...metricsShapes("metrics"),
    ...peerShapes("peer", {}),
    ...memberShapes("client with JWT", {
      authorization: "Bearer eyJhbGciOiJSUzI1NiJ9.eyJhIjoxfQ.YQ",
    }),
    ...memberShapes("grpc-proxy", {}),
    ...metricsShapes("gateway"),
    ...apiShapes("API server", {}),
    ...apiShapes("API server as admin", { authorization: `Bearer ${ADMIN_TOKEN}` }),
  ];
}

export class Servers implements Victims {
  readonly targets = new Map<string, Target>();
  /** root's token at the member with users. */
  rootToken = "";
  readonly #processes: Process[];
  readonly #dir: string;

  private constructor(dir: string, processes: Process[]) {
    this.#dir = dir;
    this.#processes = processes;
  }

  static async start(): Promise<Servers> {
    const dir = mkdtempSync(join(tmpdir(), "quorate-linear-"));
    const ports = await freePorts(8);
    const [client, peer, metrics, jwtClient, jwtPeer, proxy, gateway, api] = ports as number[];
    const certs = await writeCertificates(join(dir, "certs"));
    const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    writeFileSync(join(dir, "jwt.pem"), pem.export({ type: "pkcs8", format: "pem" }));
    writeFileSync(join(dir, "tokens.csv"), `${ADMIN_TOKEN},admin,1,"system:masters"\n`);
    const member = (name: string, clientUrl: string, peerUrl: string): string[] => [
      `--name=${name}`,
      `--data-dir=${join(dir, name)}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=${name}=${peerUrl}`,
      "--enable-v2",
      "--bcrypt-cost=4",
      "--unsafe-no-fsync",
      "--quota-backend-bytes=1000000000",
      "--auto-compaction-mode=revision",
      "--auto-compaction-retention=50",
    ];
    const local = (port: number): string => `http://127.0.0.1:${port}`;
    const log = (name: string): string => join(dir, `${name}.log`);
    const metricsFlag = `--listen-metrics-urls=${local(metrics)}`;
    const users = start([...member("a", local(client), local(peer)), metricsFlag], log("a"));
    const signed = start(
      [
        ...member("b", `https://127.0.0.1:${jwtClient}`, local(jwtPeer)),
        `--cert-file=${certs.server}`,
        `--key-file=${certs.serverKey}`,
        `--auth-token=jwt,priv-key=${join(dir, "jwt.pem")},sign-method=RS256`,
      ],
      log("b"),
    );
    const grpcProxy = start(
      ["grpc-proxy", "start", `--endpoints=${local(client)}`, `--listen-addr=127.0.0.1:${proxy}`],
      log("grpc-proxy"),
    );
    const tcpGateway = start(
      ["gateway", "start", `--endpoints=127.0.0.1:${client}`, `--listen-addr=127.0.0.1:${gateway}`],
      log("gateway"),
    );
    const apiServer = start(
      [
        "apiserver",
        `--data-dir=${join(dir, "api")}`,
        `--secure-port=${api}`,
        `--token-auth-file=${join(dir, "tokens.csv")}`,
      ],
      log("api"),
    );
    const servers = new Servers(dir, [users, signed, grpcProxy, tcpGateway, apiServer]);
    const add = (port: string, number: number, tls: boolean, ...processes: Process[]): void => {
      const pids = processes.map(({ pid }) => pid);
      servers.targets.set(port, { where: { port: number, tls }, pids });
    };
    add("client", client, false, users);
    add("client as root", client, false, users);
    add("metrics", metrics, false, users);
    add("peer", peer, false, users);
    add("client with JWT", jwtClient, true, signed);
    add("grpc-proxy", proxy, false, grpcProxy, users);
    add("gateway", gateway, false, tcpGateway, users);
    add("API server", api, true, apiServer);
    add("API server as admin", api, true, apiServer);
    try {
      await servers.#setUp(client, jwtClient, proxy, api);
    } catch (error) {
      const logs = ["a", "b", "grpc-proxy", "gateway", "api"].map(
        (name) => `--- ${name}\n${readFileSync(log(name), "utf8").slice(-1500)}`,
      );
      await servers.stop();
      throw new Error(`the servers did not start: ${(error as Error).message}\n${logs.join("\n")}`);
    }
    return servers;
  }

  async #setUp(client: number, jwtClient: number, proxy: number, api: number): Promise<void> {
    const agent = new Agent({ connect: { rejectUnauthorized: false } });
    const endMs = performance.now() + START_LIMIT_MS;
    const call = async (url: string, body?: unknown, headers = {}, type = "json") => {
      const answer = await request(url, {
        dispatcher: agent,
        method: body === undefined ? "GET" : "POST",
        headers: { "content-type": `application/${type}`, ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    };
    const ready = async (url: string, headers = {}): Promise<void> => {
      for (;;) {
        const answer = await call(url, undefined, headers).catch(() => undefined);
        if (answer?.status === 200) return;
        if (performance.now() > endMs || this.hasEnded)
          throw new Error(`${url} is not ready: ${answer?.text}`);
        await delay(100);
      }
    };
    const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
    try {
      for (const base of [`http://127.0.0.1:${client}`, `https://127.0.0.1:${jwtClient}`]) {
        await ready(`${base}/health`);
        await call(`${base}/v3/auth/user/add`, { name: "root", password: "root" });
        await call(`${base}/v3/auth/role/add`, { name: "root" });
        await call(`${base}/v3/auth/user/grant`, { user: "root", role: "root" });
        await call(`${base}/v3/auth/enable`, {});
      }
      const login = { name: "root", password: "root" };
      const answer = await call(`http://127.0.0.1:${client}/v3/auth/authenticate`, login);
      this.rootToken = (JSON.parse(answer.text) as { token: string }).token;
      await ready(`http://127.0.0.1:${proxy}/metrics`);
      const base = `https://127.0.0.1:${api}`;
      await ready(`${base}/readyz`, admin);
      const definitions = `${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`;
      const made = await call(definitions, widgetDefinition(), admin);
      if (made.status !== 201) throw new Error(`the definition: ${made.text}`);
      await ready(`${base}/apis/attack.org/v1/namespaces/default/widgets`, admin);
      const map = {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "a" },
        data: { a: "b" },
      };
      await call(`${base}/api/v1/namespaces/default/configmaps`, map, admin);
    } finally {
      await agent.destroy();
    }
  }

  /** True if a process has ended by itself. */
  get hasEnded(): boolean {
    return this.#processes.some((one) => one.isGone());
  }

  /** The ends of all logs. */
  logTails(): string {
    return ["a", "b", "grpc-proxy", "gateway", "api"]
      .map((name) => readFileSync(join(this.#dir, `${name}.log`), "utf8").slice(-1500))
      .join("\n---\n");
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((one) => one.kill()));
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

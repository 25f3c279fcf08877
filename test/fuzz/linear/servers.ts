/**
 * The servers under attack, each a process: a member with users (client, metrics and peer port), a
 * member with signed tokens and TLS, the two proxies before them, and servers of packages.
 */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "undici";
import { writeCertificates } from "../../../scripts/certs.ts";
import { contributed } from "../../../scripts/contributed.ts";
import { freePorts } from "../../support/ports.ts";
import type { Target, Victims } from "./attack.ts";
import { Caller, type Process, startProcess } from "./process.ts";
import { memberShapes, metricsShapes, peerShapes, type Shape } from "./shapes.ts";

/** What a package's servers are started with. */
export interface Workplace {
  /** For files. */
  readonly dir: string;
  /** Certificates are not checked. */
  readonly caller: Caller;
  /** Starts `quorate` with these arguments. @param name that of its log */
  start(name: string, args: readonly string[]): Process;
}

/** Servers of a package, and what is sent to their ports. */
export interface Attacked {
  readonly shapes: readonly Shape[];
  /** Starts them; resolves with their ports by name, when they serve. */
  start(workplace: Workplace): Promise<ReadonlyMap<string, Target>>;
}

const ofPackages = (await contributed<{ attacked: Attacked }>("attack")).map((it) => it.attacked);

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
    ...ofPackages.flatMap(({ shapes }) => shapes),
  ];
}

export class Servers implements Victims {
  readonly targets = new Map<string, Target>();
  /** root's token at the member with users. */
  rootToken = "";
  readonly #processes = new Map<string, Process>();
  readonly #dir = mkdtempSync(join(tmpdir(), "quorate-linear-"));

  private constructor() {}

  static async start(): Promise<Servers> {
    const servers = new Servers();
    const agent = new Agent({ connect: { rejectUnauthorized: false } });
    try {
      await servers.#start(new Caller(agent, () => servers.hasEnded));
    } catch (error) {
      const logs = servers.logTails();
      await servers.stop();
      throw new Error(`the servers did not start: ${(error as Error).message}\n${logs}`);
    } finally {
      await agent.destroy();
    }
    return servers;
  }

  #run(name: string, args: readonly string[]): Process {
    const process = startProcess(args, this.#logOf(name));
    this.#processes.set(name, process);
    return process;
  }

  async #start(caller: Caller): Promise<void> {
    const dir = this.#dir;
    const ports = await freePorts(7);
    const [client, peer, metrics, jwtClient, jwtPeer, proxy, gateway] = ports as number[];
    const certs = await writeCertificates(join(dir, "certs"));
    const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    writeFileSync(join(dir, "jwt.pem"), pem.export({ type: "pkcs8", format: "pem" }));
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
    const metricsFlag = `--listen-metrics-urls=${local(metrics)}`;
    const users = this.#run("a", [...member("a", local(client), local(peer)), metricsFlag]);
    const signed = this.#run("b", [
      ...member("b", `https://127.0.0.1:${jwtClient}`, local(jwtPeer)),
      `--cert-file=${certs.server}`,
      `--key-file=${certs.serverKey}`,
      `--auth-token=jwt,priv-key=${join(dir, "jwt.pem")},sign-method=RS256`,
    ]);
    const grpcProxy = this.#run("grpc-proxy", [
      "grpc-proxy",
      "start",
      `--endpoints=${local(client)}`,
      `--listen-addr=127.0.0.1:${proxy}`,
    ]);
    const tcpGateway = this.#run("gateway", [
      "gateway",
      "start",
      `--endpoints=127.0.0.1:${client}`,
      `--listen-addr=127.0.0.1:${gateway}`,
    ]);
    const add = (port: string, number: number, tls: boolean, ...processes: Process[]): void => {
      const pids = processes.map(({ pid }) => pid);
      this.targets.set(port, { where: { port: number, tls }, pids });
    };
    add("client", client, false, users);
    add("client as root", client, false, users);
    add("metrics", metrics, false, users);
    add("peer", peer, false, users);
    add("client with JWT", jwtClient, true, signed);
    add("grpc-proxy", proxy, false, grpcProxy, users);
    add("gateway", gateway, false, tcpGateway, users);
    for (const base of [local(client), `https://127.0.0.1:${jwtClient}`]) {
      await caller.ready(`${base}/health`);
      await caller.call(`${base}/v3/auth/user/add`, { name: "root", password: "root" });
      await caller.call(`${base}/v3/auth/role/add`, { name: "root" });
      await caller.call(`${base}/v3/auth/user/grant`, { user: "root", role: "root" });
      await caller.call(`${base}/v3/auth/enable`, {});
    }
    const login = { name: "root", password: "root" };
    const { text } = await caller.call(`${local(client)}/v3/auth/authenticate`, login);
    this.rootToken = (JSON.parse(text) as { token: string }).token;
    await caller.ready(`${local(proxy)}/metrics`);
    const workplace = { dir, caller, start: this.#run.bind(this) };
    for (const one of ofPackages)
      for (const [port, target] of await one.start(workplace)) this.targets.set(port, target);
  }

  /** True if a process has ended by itself. */
  get hasEnded(): boolean {
    return this.#processes.values().some((one) => one.isGone());
  }

  #logOf(name: string): string {
    return join(this.#dir, `${name}.log`);
  }

  /** The ends of all logs. */
  logTails(): string {
    return [...this.#processes.keys()]
      .map((name) => `--- ${name}\n${readFileSync(this.#logOf(name), "utf8").slice(-1500)}`)
      .join("\n");
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.values().map((one) => one.kill()));
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

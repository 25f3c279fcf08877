/**
 * Kubernetes, as far as the chart's pods notice: a StatefulSet with Parallel management, volumes,
 * secrets and config maps, names of pods, a service of those that are ready, restarts of
 * containers, jobs. Each container is a process in a network and a mount namespace of its own, on a
 * root of its own, with the image's /usr being this machine's. Runs in a network namespace made for
 * it: it makes a bridge there.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { BUNDLED_PROGRAMS, bundledProgram, writeProgram } from "../support/bundled.ts";
import { endsWithUs } from "../support/children.ts";
import { until } from "../support/until.ts";

const repository = resolve(import.meta.dirname, "../..");
const RESTART_MS = 300; // Kubernetes' later ones wait longer.
const READY_POLL_MS = 200;

export interface Container {
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
}
export interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
    readonly emptyDir?: object;
  }[];
}
export interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas: number;
    readonly serviceName: string;
    readonly template: { readonly spec: PodSpec };
  };
}

/** How the machine is set up for this: throws with what cannot be done here. */
export function makeBridge(): void {
  execFileSync("ip", ["link", "set", "lo", "up"]);
  execFileSync("ip", ["link", "add", "pods", "type", "bridge"]);
  execFileSync("ip", ["addr", "add", "10.77.0.1/16", "dev", "pods"]);
  execFileSync("ip", ["link", "set", "pods", "up"]);
}

/** Which network namespace a process is in. */
function networkOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

export class Pod {
  readonly name: string;
  readonly address: string;
  readonly dir: string;
  readonly spec: PodSpec;
  isReady = false;
  isStopping = false;
  restarts = 0;
  /** The exit code of its container, if it ended and is not started again. */
  exitCode: number | null | undefined;
  child: ChildProcess | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor(name: string, address: string, dir: string, spec: PodSpec) {
    this.name = name;
    this.address = address;
    this.dir = dir;
    this.spec = spec;
  }

  get root(): string {
    return join(this.dir, "root");
  }

  get container(): Container {
    return this.spec.containers[0];
  }
}

export class Kubernetes {
  readonly #dir: string;
  readonly #domain: string;
  readonly #configMaps = new Map<string, Readonly<Record<string, string>>>();
  readonly #secrets = new Map<string, Readonly<Record<string, string>>>();
  readonly pods = new Map<string, Pod>();
  /** Pods of jobs and clients. */
  readonly #others = new Set<Pod>();
  #links = 0;
  #podCount = 0;
  #set: Manifest | undefined;
  #isClosed = false;

  /** @param domain of the service, such as db.svc.cluster.local */
  constructor(dir: string, domain: string) {
    this.#dir = dir;
    this.#domain = domain;
    mkdirSync(join(dir, "claims"), { recursive: true });
    mkdirSync(join(dir, "bin"), { recursive: true });
    for (const program of BUNDLED_PROGRAMS) {
      const source = [process.execPath, join(repository, "bin", `${program}.js`)];
      writeProgram(join(dir, "bin", program), bundledProgram(program) ?? source);
    }
    void this.#probe();
  }

  secret(name: string, files: Readonly<Record<string, string>>): void {
    this.#secrets.set(name, files);
  }

  /** helm install and upgrade: the hooks before, what is changed, the hooks after. */
  async apply(manifests: readonly Manifest[], isUpgrade: boolean): Promise<void> {
    const hookOf = ({ metadata }: Manifest) => metadata.annotations?.["helm.sh/hook"] ?? "";
    const isMap = ({ kind }: Manifest) => kind === "ConfigMap";
    const jobs = (when: string) =>
      manifests.filter((one) => one.kind === "Job" && hookOf(one).split(",").includes(when));
    for (const map of manifests.filter((one) => isMap(one) && hookOf(one) !== ""))
      this.#configMaps.set(map.metadata.name, map.data!);
    if (isUpgrade) for (const job of jobs("pre-upgrade")) await this.runJob(job);
    for (const map of manifests.filter((one) => isMap(one) && hookOf(one) === ""))
      this.#configMaps.set(map.metadata.name, map.data!);
    for (const pod of this.pods.values()) this.#writeConfig(pod);
    const set = manifests.find(({ kind }) => kind === "StatefulSet")!;
    await this.scale(set.spec.replicas, set);
    if (isUpgrade) for (const job of jobs("post-upgrade")) await this.runJob(job);
  }

  /**
   * What the StatefulSet's controller does with Parallel management; resolves when surplus pods are
   * gone.
   */
  async scale(replicas: number, set: Manifest = this.#set!): Promise<void> {
    this.#set = set;
    const surplus = [...this.pods.values()].filter(
      ({ name }) => Number(name.slice(name.lastIndexOf("-") + 1)) >= replicas,
    );
    await Promise.all(surplus.map((pod) => this.#remove(pod)));
    for (let i = 0; i < replicas; i++) {
      const name = `${set.metadata.name}-${i}`;
      if (!this.pods.has(name)) this.#create(name, set);
    }
  }

  /** kubectl delete pod: it is made again on the same volume, or on a new one if that is lost. */
  async deletePod(name: string, losesVolume = false): Promise<void> {
    await this.#remove(this.pods.get(name)!);
    const claim = join(this.#dir, "claims", name);
    if (losesVolume) renameSync(claim, `${claim}.lost`);
    this.#create(name, this.#set!);
  }

  /**
   * Runs a job's pod to its end; rejects where that is not good. Resolves to what it wrote to
   * standard error.
   */
  async runJob(job: Manifest): Promise<void> {
    const pod = this.#pod(job.metadata.name, job.spec.template.spec);
    this.#others.add(pod);
    await this.#run(pod, false);
    await pod.ended;
    this.#others.delete(pod);
    if (pod.exitCode !== 0) throw new Error(`job ${pod.name} ended with ${pod.exitCode}`);
  }

  /** A pod that is no member, with a command of the test's. Its name is no member's. */
  async runClient(
    like: Manifest,
    command: readonly string[],
    onLine: (line: string) => void,
  ): Promise<Pod> {
    const spec = like.spec.template.spec;
    const pod = this.#pod("client", {
      ...spec,
      containers: [{ ...spec.containers[0], command, args: [] }],
    });
    this.#others.add(pod);
    await this.#run(pod, false, onLine);
    return pod;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.pods.values()].map((pod) => this.#remove(pod)));
  }

  #create(name: string, set: Manifest): void {
    const pod = this.#pod(name, set.spec.template.spec);
    this.pods.set(name, pod);
    this.#writeHosts();
    void this.#run(pod, true);
  }

  #pod(name: string, spec: PodSpec): Pod {
    const count = ++this.#podCount;
    const pod = new Pod(name, `10.77.1.${count}`, join(this.#dir, `pod-${count}-${name}`), spec);
    const { root } = pod;
    for (const path of [
      "etc",
      "tmp",
      "var/lib",
      "opt/quorate/bin",
      "proc",
      "dev",
      repository,
      dirname(process.execPath),
    ]) {
      mkdirSync(join(root, path), { recursive: true });
    }
    for (const path of ["usr", "bin", "sbin", "lib", "lib64"]) {
      if (!existsSync(`/${path}`)) continue;
      if (lstatSync(`/${path}`).isSymbolicLink())
        symlinkSync(readlinkSync(`/${path}`), join(root, path));
      else mkdirSync(join(root, path));
    }
    cpSync("/etc/passwd", join(root, "etc/passwd"));
    writeFileSync(join(root, "etc/nsswitch.conf"), "hosts: files\n");
    writeFileSync(join(root, "etc/resolv.conf"), "");
    writeFileSync(join(root, "etc/hosts"), "");
    this.#writeConfig(pod);
    this.#hosts(pod);
    return pod;
  }

  /** Where a volume of a pod is, made if it is not there. */
  #volume(pod: Pod, name: string): string {
    const isDeclared = pod.spec.volumes.some((one) => one.name === name);
    const path = isDeclared ? join(pod.dir, "volumes", name) : join(this.#dir, "claims", pod.name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  #writeConfig(pod: Pod): void {
    for (const { name, configMap, secret } of pod.spec.volumes) {
      const files =
        configMap === undefined
          ? this.#secrets.get(secret?.secretName ?? "")
          : this.#configMaps.get(configMap.name);
      if (configMap === undefined && secret === undefined) continue;
      if (files === undefined)
        throw new Error(
          `${pod.name}: volume ${name} is of ${configMap?.name ?? secret?.secretName}, which is not there`,
        );
      const dir = this.#volume(pod, name);
      for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
    }
  }

  /** Starts the container; again and again where it is to run for ever. */
  async #run(
    pod: Pod,
    isService: boolean,
    onLine: (line: string) => void = () => {},
  ): Promise<void> {
    const { container } = pod;
    const filled = (text: string) => text.replaceAll("$(POD_NAME)", pod.name);
    const env = container.env.map(
      ({ name, value }) => `${name}=${value === undefined ? pod.name : filled(value)}`,
    );
    const command = [...container.command, ...(container.args ?? [])].map(filled);
    const binds = container.volumeMounts.map(
      ({ name, mountPath }) => [this.#volume(pod, name), mountPath] as const,
    );
    const real = ["usr", "bin", "sbin", "lib", "lib64"].filter(
      (path) => existsSync(`/${path}`) && !lstatSync(`/${path}`).isSymbolicLink(),
    );
    const script = [
      "set -e",
      ...[...real, "proc", "dev"].map((path) => `mount --rbind /${path} "$ROOT/${path}"`),
      `mount --bind '${join(this.#dir, "bin")}' "$ROOT/opt/quorate/bin"`,
      ...binds.map(([from, to]) => `mkdir -p "$ROOT${to}"; mount --bind '${from}' "$ROOT${to}"`),
      // After the volumes: a clone may lie below /tmp, which is one of them.
      ...[repository, dirname(process.execPath)].map(
        (path) => `mkdir -p "$ROOT${path}"; mount --rbind '${path}' "$ROOT${path}"`,
      ),
      "ip link set lo up",
      "until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done",
      `ip addr add ${pod.address}/16 dev eth0; ip link set eth0 up`,
      `exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ "$@"`,
    ].join("\n");
    const child = spawn(
      "unshare",
      ["--net", "--mount", "--propagation=private", "sh", "-c", script, "sh", ...env, ...command],
      {
        env: { ...process.env, ROOT: pod.root },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    endsWithUs(child);
    pod.child = child;
    const log = join(this.#dir, `${pod.name}.log`);
    let rest = "";
    child.stdout.on("data", (bytes) => {
      const lines = (rest + String(bytes)).split("\n");
      rest = lines.pop()!;
      for (const line of lines) onLine(line);
    });
    child.stderr.on("data", (bytes) => appendFileSync(log, bytes));
    pod.ended = new Promise((done) => {
      child.once("exit", async (code) => {
        pod.isReady = false;
        pod.exitCode = code;
        appendFileSync(log, `--- container of ${pod.name} ended with ${code}\n`);
        if (isService && !pod.isStopping) {
          await delay(RESTART_MS);
          pod.restarts++;
          if (!pod.isStopping) await this.#run(pod, true);
        }
        done();
      });
    });
    const link = `v${++this.#links}`;
    await until(`the network of ${pod.name}`, () => {
      if (child.exitCode !== null || child.signalCode !== null) return true;
      if (networkOf(child.pid!) === networkOf(process.pid)) return false;
      try {
        execFileSync(
          "ip",
          ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", String(child.pid)],
          { stdio: "ignore" },
        );
        execFileSync("ip", ["link", "set", link, "master", "pods", "up"], { stdio: "ignore" });
        return true;
      } catch {
        // It ends just now.
        return false;
      }
    });
  }

  async #remove(pod: Pod): Promise<void> {
    pod.isStopping = true;
    const graceMs = (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000;
    pod.child?.kill("SIGTERM");
    const late = setTimeout(() => pod.child?.kill("SIGKILL"), graceMs);
    await pod.ended;
    clearTimeout(late);
    this.pods.delete(pod.name);
    this.#writeHosts();
  }

  /** The kubelet's probes and the endpoints of the service. */
  async #probe(): Promise<void> {
    while (!this.#isClosed) {
      const before = this.#readyNames();
      await Promise.all(
        [...this.pods.values()].map(async (pod) => {
          const path = pod.container.readinessProbe?.httpGet.path ?? "/";
          const answer = await request(`http://${pod.address}:2381${path}`, {
            signal: AbortSignal.timeout(2000),
          }).catch(() => undefined);
          await answer?.body.dump().catch(() => {});
          pod.isReady = answer?.statusCode === 200 && !pod.isStopping;
        }),
      );
      if (this.#readyNames() !== before) this.#writeHosts();
      await delay(READY_POLL_MS);
    }
  }

  #readyNames(): string {
    return [...this.pods.values()]
      .flatMap((pod) => (pod.isReady ? [`${pod.name} ${pod.address}`] : []))
      .join();
  }

  #writeHosts(): void {
    for (const pod of [...this.pods.values(), ...this.#others]) this.#hosts(pod);
  }

  #hosts(pod: Pod): void {
    writeFileSync(join(pod.root, "etc/hosts"), this.#hostsText());
  }

  #hostsText(): string {
    const service = this.#set?.spec.serviceName ?? "";
    const lines = ["127.0.0.1 localhost"];
    for (const pod of this.pods.values()) {
      lines.push(`${pod.address} ${pod.name}.${service}.${this.#domain}`);
      if (pod.isReady) lines.push(`${pod.address} ${service}-client.${this.#domain}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

/**
 * Kubernetes, as far as the chart's pods notice: a StatefulSet with Parallel management, volumes,
 * secrets and config maps, names of pods, a service of those that are ready, restarts of
 * containers, jobs. Each container is a process (sandbox.ts).
 */
import type { ChildProcess } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { Sandbox, writePrograms } from "../support/sandbox.ts";

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

export class Pod {
  readonly name: string;
  readonly dir: string;
  readonly spec: PodSpec;
  readonly sandbox: Sandbox;
  isReady = false;
  isStopping = false;
  restarts = 0;
  /** The exit code of its container, if it ended and is not started again. */
  exitCode: number | null | undefined;
  child: ChildProcess | undefined;
  ended: Promise<void> = Promise.resolve();

  constructor(name: string, dir: string, spec: PodSpec, sandbox: Sandbox) {
    this.name = name;
    this.dir = dir;
    this.spec = spec;
    this.sandbox = sandbox;
  }

  get address(): string {
    return this.sandbox.address;
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
  #podCount = 0;
  #set: Manifest | undefined;
  #isClosed = false;

  /** @param domain of the service, such as db.svc.cluster.local */
  constructor(dir: string, domain: string) {
    this.#dir = dir;
    this.#domain = domain;
    mkdirSync(join(dir, "claims"), { recursive: true });
    writePrograms(join(dir, "bin"));
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
    const dir = join(this.#dir, `pod-${count}-${name}`);
    const programs = join(this.#dir, "bin");
    const sandbox = new Sandbox({ dir, programs, address: `10.77.1.${count}` });
    const pod = new Pod(name, dir, spec, sandbox);
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
    const logFile = join(this.#dir, `${pod.name}.log`);
    const { name, sandbox } = pod;
    const { child, connected } = sandbox.start({ name, command, env, binds, logFile, onLine });
    pod.child = child;
    pod.ended = new Promise((done) => {
      child.once("exit", async (code) => {
        pod.isReady = false;
        pod.exitCode = code;
        if (isService && !pod.isStopping) {
          await delay(RESTART_MS);
          pod.restarts++;
          if (!pod.isStopping) await this.#run(pod, true);
        }
        done();
      });
    });
    await connected;
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
    pod.sandbox.writeHosts(this.#hostsText());
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

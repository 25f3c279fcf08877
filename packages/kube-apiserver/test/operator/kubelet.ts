/**
 * What runs pods where there is no Kubernetes but an API server: scheduler, kubelet, volumes and
 * services in one. Containers are processes (sandbox.ts), claims and secrets are directories, and
 * names of pods and services are in each pod's /etc/hosts. It reads the API server five times a
 * second, and writes what a kubelet writes: phase, address, conditions, states of containers.
 */
import { type ChildProcess, execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { Sandbox, writePrograms } from "../../../../test/support/sandbox.ts";
import type { WalkApi } from "./kubernetes.ts";

const TURN_MS = 200;
/** Kubernetes' later ones wait longer. */
const RESTART_MS = 300;
const DEFAULT_GRACE_SECONDS = 30;

interface Probe {
  readonly httpGet?: { readonly path: string };
  readonly exec?: { readonly command: readonly string[] };
  readonly periodSeconds?: number;
  readonly failureThreshold?: number;
}

interface Container {
  readonly name: string;
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly terminationMessagePath?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: { readonly preStop?: Probe };
}

interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly hostname?: string;
    readonly subdomain?: string;
    readonly restartPolicy?: string;
    readonly containers: readonly Container[];
    readonly volumes?: readonly {
      readonly name: string;
      readonly persistentVolumeClaim?: { readonly claimName: string };
      readonly secret?: { readonly secretName: string };
      readonly emptyDir?: object;
    }[];
  };
}

interface Plain {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
  };
  readonly spec?: {
    readonly resources?: { readonly requests: { readonly storage: string } };
    readonly clusterIP?: string;
    readonly selector?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly status?: { readonly phase?: string; readonly capacity?: { readonly storage?: string } };
}

/** A pod that runs here. */
class Running {
  readonly pod: PodObject;
  readonly dir: string;
  readonly sandbox: Sandbox;
  child: ChildProcess | undefined;
  isReady = false;
  readySince = new Date().toISOString();
  isStopping = false;
  isStarting = false;
  /** The exit code of the last container; undefined while the first one runs. */
  lastCode: number | undefined;
  restarts = 0;
  hasEnded = false;
  /** Versions of the secrets that were written to its volumes. */
  readonly written = new Map<string, string>();
  probeDueMs = 0;
  isProbing = false;
  failures = 0;
  reported = "";

  constructor(pod: PodObject, dir: string, sandbox: Sandbox) {
    this.pod = pod;
    this.dir = dir;
    this.sandbox = sandbox;
  }

  get container(): Container {
    return this.pod.spec.containers[0];
  }

  get isUp(): boolean {
    return (
      this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null
    );
  }
}

export class Kubelet {
  readonly #api: WalkApi;
  readonly #dir: string;
  readonly #pods = new Map<string, Running>();
  /** Directories of claims, by their names. */
  readonly #claims = new Map<string, string>();
  #count = 0;
  #isClosed = false;
  #services: readonly Plain[] = [];
  #hosts = "";
  readonly #turns: Promise<void>;

  constructor(api: WalkApi, dir: string) {
    this.#api = api;
    this.#dir = dir;
    mkdirSync(join(dir, "claims"), { recursive: true });
    writePrograms(join(dir, "bin"));
    this.#turns = this.#run();
  }

  /** Addresses of the pods that are ready and have these labels, by their names. */
  addressesOf(selector: Readonly<Record<string, string>>): Map<string, string> {
    const ready = [...this.#pods.values()].filter(
      (one) => one.isReady && !one.isStopping && hasLabels(one.pod, selector),
    );
    return new Map(ready.map(({ pod, sandbox }) => [pod.metadata.name, sandbox.address]));
  }

  /** Kills the container of a pod with kill -9. */
  kill(name: string): void {
    this.#named(name)?.child?.kill("SIGKILL");
  }

  /** The process of a pod of that name that is ready; undefined where there is none. */
  readyPid(name: string): number | undefined {
    const running = this.#named(name);
    return running?.isUp === true && running.isReady ? running.child?.pid : undefined;
  }

  /** How many pods with these labels there are. */
  count(selector: Readonly<Record<string, string>>): number {
    return [...this.#pods.values()].filter(({ pod }) => hasLabels(pod, selector)).length;
  }

  /** Whether a pod of that name runs here. */
  runs(name: string): boolean {
    return this.#named(name)?.isUp === true;
  }

  /**
   * Cuts the network of a pod's node, or joins it again. Meanwhile its probes fail, as if the
   * cluster said so of a node that is not heard of, and the pod does not learn that it is to go.
   */
  setCut(name: string, isCut: boolean): void {
    this.#named(name)?.sandbox.setCut(isCut);
  }

  /** Empties the directory behind a claim, and kills the container that uses it. */
  loseDisk(claim: string): void {
    const running = this.#named(claim);
    const path = this.claimDir(claim);
    renameSync(path, `${path}.lost-${this.#count++}`);
    mkdirSync(path);
    running?.child?.kill("SIGKILL");
  }

  /** Where a claim's files are. */
  claimDir(name: string): string {
    return this.#claims.get(name)!;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turns;
    for (const running of this.#pods.values()) {
      running.isStopping = true;
      running.child?.kill("SIGKILL");
    }
  }

  #named(name: string): Running | undefined {
    return [...this.#pods.values()].find(({ pod }) => pod.metadata.name === name);
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#turn();
      await delay(TURN_MS);
    }
  }

  async #list<T>(plural: string): Promise<readonly T[]> {
    const { status, body } = await this.#api.request(`/api/v1/${plural}`);
    if (status !== 200) throw new Error(`${plural}: ${status} ${JSON.stringify(body)}`);
    return body.items as T[];
  }

  async #turn(): Promise<void> {
    const [pods, claims, secrets, services] = await Promise.all([
      this.#list<PodObject>("pods"),
      this.#list<Plain>("persistentvolumeclaims"),
      this.#list<Plain>("secrets"),
      this.#list<Plain>("services"),
    ]);
    this.#services = services;
    for (const claim of claims) await this.#bind(claim);
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, running] of this.#pods) {
      if (uids.has(uid)) continue;
      running.isStopping = true;
      running.child?.kill("SIGKILL");
      this.#pods.delete(uid);
    }
    const names = new Set(claims.map(({ metadata }) => metadata.name));
    for (const pod of pods) await this.#look(pod, names, secrets);
    this.#writeHosts();
    for (const running of this.#pods.values()) await this.#report(running);
  }

  async #bind({ metadata, spec, status }: Plain): Promise<void> {
    this.#claims.set(metadata.name, join(this.#dir, "claims", metadata.uid));
    const capacity = spec?.resources?.requests;
    if (status?.phase === "Bound" && status.capacity?.storage === capacity?.storage) return;
    mkdirSync(this.claimDir(metadata.name), { recursive: true });
    const path = `/api/v1/namespaces/${metadata.namespace}/persistentvolumeclaims/${metadata.name}`;
    await this.#patch(`${path}/status`, { status: { phase: "Bound", capacity } });
  }

  async #look(
    pod: PodObject,
    claims: ReadonlySet<string>,
    secrets: readonly Plain[],
  ): Promise<void> {
    const { uid, name, namespace, deletionTimestamp } = pod.metadata;
    let running = this.#pods.get(uid);
    if (running === undefined) {
      const volumes = pod.spec.volumes ?? [];
      const isMissing = volumes.some(
        ({ persistentVolumeClaim: claim, secret }) =>
          (claim !== undefined && !claims.has(claim.claimName)) ||
          (secret !== undefined &&
            !secrets.some(({ metadata }) => metadata.name === secret.secretName)),
      );
      if (isMissing || deletionTimestamp !== undefined) return;
      // A scheduler's part: pods that are on a node take their time to end.
      await this.#api.assign(namespace, name);
      const count = ++this.#count;
      const dir = join(this.#dir, `pod-${count}-${name}`);
      const address = `10.77.${1 + Math.floor(count / 250)}.${1 + (count % 250)}`;
      const sandbox = new Sandbox({ dir, programs: join(this.#dir, "bin"), address });
      running = new Running(pod, dir, sandbox);
      sandbox.writeHosts(this.#hosts);
      this.#pods.set(uid, running);
    }
    this.#writeSecrets(running, secrets);
    if (deletionTimestamp !== undefined) {
      if (!running.isStopping && !running.sandbox.isCut) void this.#stop(running, pod);
      return;
    }
    if (!running.isUp && !running.isStarting && !running.hasEnded) void this.#start(running);
    this.#probe(running);
  }

  #writeSecrets(running: Running, secrets: readonly Plain[]): void {
    for (const { name, secret } of running.pod.spec.volumes ?? []) {
      if (secret === undefined) continue;
      const found = secrets.find(({ metadata }) => metadata.name === secret.secretName);
      if (found === undefined) continue;
      const { resourceVersion } = found.metadata;
      if (running.written.get(name) === resourceVersion) continue;
      const dir = this.#volume(running, name);
      for (const [file, text] of Object.entries(found.data ?? {})) {
        writeFileSync(join(dir, `.${file}`), Buffer.from(text, "base64"));
        renameSync(join(dir, `.${file}`), join(dir, file));
      }
      running.written.set(name, resourceVersion);
    }
  }

  #volume(running: Running, name: string): string {
    const volume = running.pod.spec.volumes?.find((one) => one.name === name);
    const claim = volume?.persistentVolumeClaim?.claimName;
    const path = claim === undefined ? join(running.dir, "volumes", name) : this.claimDir(claim);
    mkdirSync(path, { recursive: true });
    return path;
  }

  async #start(running: Running): Promise<void> {
    const { container, pod, sandbox } = running;
    running.isStarting = true;
    if (running.lastCode !== undefined) await delay(RESTART_MS);
    if (running.isStopping) return;
    const binds = (container.volumeMounts ?? []).map(({ name, mountPath }): [string, string] => [
      this.#volume(running, name),
      mountPath,
    ]);
    const { terminationMessagePath: said } = container;
    if (said !== undefined) binds.push([this.#volume(running, "last-words"), dirname(said)]);
    const { child, connected } = sandbox.start({
      name: pod.metadata.name,
      command: [...container.command, ...(container.args ?? [])],
      env: (container.env ?? []).map(({ name, value = "" }) => `${name}=${value}`),
      binds,
      logFile: join(this.#dir, `${pod.metadata.name}.log`),
    });
    running.child = child;
    running.failures = 0;
    child.once("exit", (code) => {
      if (running.lastCode !== undefined) running.restarts++;
      running.lastCode = code ?? 137;
      this.#setReady(running, false);
      running.hasEnded = pod.spec.restartPolicy === "Never";
    });
    await connected;
    running.isStarting = false;
  }

  /** preStop, SIGTERM, the grace period, SIGKILL; then the object goes. */
  async #stop(running: Running, pod: PodObject): Promise<void> {
    running.isStopping = true;
    this.#setReady(running, false);
    const { child, container } = running;
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
    if (child !== undefined && running.isUp) {
      const late = setTimeout(() => child.kill("SIGKILL"), graceMs);
      const ended = new Promise((done) => child.once("exit", done));
      const { preStop } = container.lifecycle ?? {};
      if (preStop?.exec !== undefined) await this.#exec(running, preStop.exec.command);
      child.kill("SIGTERM");
      await ended;
      clearTimeout(late);
    }
    const { namespace, name, uid } = pod.metadata;
    await this.#api.request(`/api/v1/namespaces/${namespace}/pods/${name}`, {
      method: "DELETE",
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        gracePeriodSeconds: 0,
        preconditions: { uid },
      },
    });
    this.#pods.delete(uid);
    rmSync(join(running.dir, "volumes"), { recursive: true, force: true });
  }

  /** Runs a command in a pod's container; whether it succeeded. */
  #exec({ child }: Running, command: readonly string[]): Promise<boolean> {
    const root = `/proc/${child!.pid}/root`;
    const inside = ["--target", String(child!.pid), "--mount", "--net"];
    return new Promise((resolve) => {
      execFile(
        "nsenter",
        [...inside, `--root=${root}`, `--wd=${root}`, ...command],
        { env: { PATH: "/usr/bin:/bin" } },
        (error) => resolve(error === null),
      );
    });
  }

  /** The readiness probe, when it is due. Containers without one are ready while they run. */
  #probe(running: Running): void {
    const { readinessProbe: probe } = running.container;
    if (!running.isUp || running.isStarting) return;
    if (probe === undefined) {
      this.#setReady(running, true);
      return;
    }
    if (running.isProbing || performance.now() < running.probeDueMs) return;
    running.isProbing = true;
    // Until it is ready for the first time, more often: tests wait for it.
    const periodMs = running.isReady ? (probe.periodSeconds ?? 10) * 1000 : 500;
    running.probeDueMs = performance.now() + periodMs;
    void this.#succeeds(running, probe).then((isWell) => {
      running.isProbing = false;
      running.failures = isWell ? 0 : running.failures + 1;
      if (isWell && running.isUp) this.#setReady(running, true);
      else if (running.failures >= (probe.failureThreshold ?? 3)) this.#setReady(running, false);
    });
  }

  async #succeeds(running: Running, { httpGet, exec }: Probe): Promise<boolean> {
    if (exec !== undefined) return this.#exec(running, exec.command);
    try {
      const answer = await request(`http://${running.sandbox.address}:2381${httpGet!.path}`, {
        signal: AbortSignal.timeout(2000),
      });
      await answer.body.dump();
      return answer.statusCode === 200;
    } catch {
      return false;
    }
  }

  #setReady(running: Running, isReady: boolean): void {
    if (running.isReady === isReady) return;
    running.isReady = isReady && !running.isStopping;
    running.readySince = new Date().toISOString();
  }

  #endOf(running: Running, exitCode: number): object {
    const { terminationMessagePath: path } = running.container;
    const file = path && join(this.#volume(running, "last-words"), basename(path));
    return { exitCode, ...(file && existsSync(file) && { message: readFileSync(file, "utf8") }) };
  }

  async #report(running: Running): Promise<void> {
    const { pod, isReady, lastCode, restarts, hasEnded, isUp } = running;
    const end = lastCode === undefined ? undefined : { terminated: this.#endOf(running, lastCode) };
    const phase = hasEnded ? (lastCode === 0 ? "Succeeded" : "Failed") : "Running";
    const status = {
      phase,
      podIP: running.sandbox.address,
      podIPs: [{ ip: running.sandbox.address }],
      conditions: [
        {
          type: "Ready",
          status: isReady ? "True" : "False",
          lastTransitionTime: running.readySince.replace(/\.\d+Z$/, "Z"),
        },
      ],
      containerStatuses: [
        {
          name: running.container.name,
          ready: isReady,
          restartCount: restarts,
          image: "image",
          imageID: "",
          state: isUp ? { running: {} } : (end ?? { waiting: { reason: "ContainerCreating" } }),
          lastState: isUp && end !== undefined ? end : {},
        },
      ],
    };
    const text = JSON.stringify(status);
    if (text === running.reported) return;
    running.reported = text;
    const { namespace, name } = pod.metadata;
    await this.#patch(`/api/v1/namespaces/${namespace}/pods/${name}/status`, { status });
  }

  #writeHosts(): void {
    const lines = ["127.0.0.1 localhost"];
    const pods = [...this.#pods.values()];
    for (const { pod, sandbox } of pods) {
      const { hostname, subdomain } = pod.spec;
      if (hostname !== undefined && subdomain !== undefined && !pod.metadata.deletionTimestamp)
        lines.push(`${sandbox.address} ${hostname}.${subdomain}.${pod.metadata.namespace}.svc`);
    }
    for (const { metadata, spec } of this.#services) {
      if (spec?.selector === undefined || spec.clusterIP === "None") continue;
      for (const { pod, sandbox, isReady } of pods)
        if (isReady && hasLabels(pod, spec.selector))
          lines.push(`${sandbox.address} ${metadata.name}.${metadata.namespace}.svc`);
    }
    const text = `${lines.join("\n")}\n`;
    if (text === this.#hosts) return;
    this.#hosts = text;
    for (const { sandbox } of pods) sandbox.writeHosts(text);
  }

  async #patch(path: string, body: object): Promise<void> {
    const contentType = "application/merge-patch+json";
    const { status, body: answer } = await this.#api.request(path, {
      method: "PATCH",
      body,
      contentType,
    });
    if (status >= 300 && status !== 404)
      throw new Error(`PATCH ${path}: ${status} ${JSON.stringify(answer)}`);
  }
}

function hasLabels({ metadata }: PodObject, selector: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => metadata.labels?.[name] === value);
}

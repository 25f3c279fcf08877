/**
 * A container as a process: in a network and a mount namespace of its own, on a root of its own,
 * with the image's /usr being this machine's. Runs in a network namespace made for it, which has a
 * bridge (makeBridge).
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { bundledProgram, writeProgram } from "./bundled.ts";
import { endsWithUs } from "./children.ts";
import { findProgram } from "./executables.ts";
import { until } from "./until.ts";

const repository = resolve(import.meta.dirname, "../..");

/** The flags of unshare(1) for who makes sandboxes. */
export const ISOLATE = ["--net", "--mount", "--propagation=private"];

/** The address of the machine on which sandboxes are. */
export const BRIDGE_ADDRESS = "10.77.0.1";

/** Why containers cannot run as processes here, or false. */
export function whyNoSandboxes(): string | false {
  for (const program of ["unshare", "nsenter", "ip", "chroot"])
    if (findProgram(program) === undefined) return `${program} is not installed`;
  const probe =
    "ip link set lo up && ip link add pods type bridge && ip link add v1 type veth peer name v2 && mount -t tmpfs tmpfs /mnt";
  const { status, stderr } = spawnSync("unshare", [...ISOLATE, "sh", "-c", probe], {
    encoding: "utf8",
  });
  return status === 0
    ? false
    : `network namespaces cannot be made here: ${stderr?.trim().split("\n").at(-1)}`;
}

/** How the machine is set up for this: throws with what cannot be done here. */
export function makeBridge(): void {
  execFileSync("ip", ["link", "set", "lo", "up"]);
  execFileSync("ip", ["link", "add", "pods", "type", "bridge"]);
  execFileSync("ip", ["addr", "add", `${BRIDGE_ADDRESS}/16`, "dev", "pods"]);
  execFileSync("ip", ["link", "set", "pods", "up"]);
}

/** Writes the programs of an image to a directory. */
export function writePrograms(dir: string): void {
  mkdirSync(dir, { recursive: true });
  for (const program of ["quorate", "quoratectl", "quorateutl"] as const) {
    const source = [process.execPath, join(repository, "bin", `${program}.js`)];
    writeProgram(join(dir, program), bundledProgram(program) ?? source);
  }
}

/** Which network namespace a process is in. */
function networkOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

export interface SandboxOptions {
  /** The directory of the sandbox; made if it is not there. */
  readonly dir: string;
  /** With the programs of the image, mounted as /opt/quorate/bin. */
  readonly programs: string;
  readonly address: string;
}

export interface ContainerOptions {
  readonly name: string;
  readonly command: readonly string[];
  /** "NAME=value". */
  readonly env: readonly string[];
  /** Directories, and where in the container they are mounted. */
  readonly binds: readonly (readonly [from: string, to: string])[];
  readonly logFile: string;
  readonly onLine?: (line: string) => void;
}

let links = 0;

export class Sandbox {
  readonly address: string;
  readonly #options: SandboxOptions;
  /** The machine's end of the link to the container that runs. */
  #link: string | undefined;
  #isCut = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.address = options.address;
    const { root } = this;
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
    this.writeHosts("");
  }

  get root(): string {
    return join(this.#options.dir, "root");
  }

  writeHosts(text: string): void {
    writeFileSync(join(this.root, "etc/hosts"), text);
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Cuts the network of the node that it is on, or joins it again: packets are dropped. */
  setCut(isCut: boolean): void {
    this.#isCut = isCut;
    if (this.#link !== undefined)
      execFileSync("ip", ["link", "set", this.#link, isCut ? "down" : "up"]);
  }

  /** Starts a container. `connected` resolves when it has its network, or has ended. */
  start(options: ContainerOptions): {
    readonly child: ChildProcess;
    readonly connected: Promise<void>;
  } {
    const { command, env, binds, onLine = () => {} } = options;
    const real = ["usr", "bin", "sbin", "lib", "lib64"].filter(
      (path) => existsSync(`/${path}`) && !lstatSync(`/${path}`).isSymbolicLink(),
    );
    const script = [
      "set -e",
      ...[...real, "proc", "dev"].map((path) => `mount --rbind /${path} "$ROOT/${path}"`),
      `mount --bind '${this.#options.programs}' "$ROOT/opt/quorate/bin"`,
      ...binds.map(([from, to]) => `mkdir -p "$ROOT${to}"; mount --bind '${from}' "$ROOT${to}"`),
      // After the volumes: a clone may lie below /tmp, which is one of them.
      ...[repository, dirname(process.execPath)].map(
        (path) => `mkdir -p "$ROOT${path}"; mount --rbind '${path}' "$ROOT${path}"`,
      ),
      "ip link set lo up",
      "until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done",
      `ip addr add ${this.address}/16 dev eth0; ip link set eth0 up`,
      `exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/ "$@"`,
    ].join("\n");
    const child = spawn("unshare", [...ISOLATE, "sh", "-c", script, "sh", ...env, ...command], {
      env: { ...process.env, ROOT: this.root },
      stdio: ["ignore", "pipe", "pipe"],
    });
    endsWithUs(child);
    let rest = "";
    child.stdout.on("data", (bytes) => {
      const lines = (rest + String(bytes)).split("\n");
      rest = lines.pop()!;
      for (const line of lines) onLine(line);
    });
    child.stderr.on("data", (bytes) => appendFileSync(options.logFile, bytes));
    child.once("exit", (code) =>
      appendFileSync(options.logFile, `--- container of ${options.name} ended with ${code}\n`),
    );
    return { child, connected: this.#connect(child, options.name) };
  }

  /** Gives a container its end of a new link to the bridge. */
  async #connect(child: ChildProcess, name: string): Promise<void> {
    const link = `v${++links}`;
    await until(`the network of ${name}`, () => {
      if (child.exitCode !== null || child.signalCode !== null) return true;
      if (networkOf(child.pid!) === networkOf(process.pid)) return false;
      try {
        execFileSync(
          "ip",
          ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", String(child.pid)],
          { stdio: "ignore" },
        );
        const state = this.#isCut ? "down" : "up";
        execFileSync("ip", ["link", "set", link, "master", "pods", state], { stdio: "ignore" });
        this.#link = link;
        return true;
      } catch {
        // It ends just now.
        return false;
      }
    });
  }
}

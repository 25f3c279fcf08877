/** Real operators as processes: built from Go's module proxy, started, killed, started again. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

const CACHE = join(import.meta.dirname, "../../../../node_modules/.cache/quorate/operators");

/** A version of an operator. */
export interface Operator {
  readonly module: string;
  readonly version: string;
  /** The package of its program. */
  readonly main: string;
  /** The file with its definition. */
  readonly definition: string;
  readonly args: readonly string[];
  readonly env: (kubeconfig: string) => Readonly<Record<string, string>>;
  /** Arguments of `go mod edit`, where a module that it needs has moved. */
  readonly modEdit?: readonly string[];
  /** How it is started, changed in a file of it: never what it does. */
  readonly edits?: readonly { readonly file: string; readonly from: string; readonly to: string }[];
}

export interface Built {
  readonly program: string;
  /** The User-Agent of its clients begins with it. */
  readonly agent: string;
  readonly definition: string;
}

/** Builds it once; undefined, with a line that says why, where that is not possible. */
export function built(operator: Operator): Built | undefined {
  const { module, version, main, modEdit = [], edits = [] } = operator;
  const agent = `${module.split("/").at(-1)}-${version}`;
  const directory = join(CACHE, agent);
  const made = {
    program: join(CACHE, "bin", agent),
    agent,
    definition: join(directory, operator.definition),
  };
  if (existsSync(made.program)) return made;
  const go = (args: readonly string[], cwd: string) =>
    spawnSync("go", args, {
      cwd,
      encoding: "utf8",
      env: { ...process.env, GOFLAGS: "-mod=mod -p=1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  mkdirSync(join(CACHE, "bin"), { recursive: true });
  const found = go(["mod", "download", "-json", `${module}@${version}`], CACHE);
  if (found.error !== undefined || found.status !== 0) {
    console.log(`${agent}: skipped: Go or its module proxy does not have it`);
    return undefined;
  }
  const { Dir } = JSON.parse(found.stdout) as { readonly Dir: string };
  rmSync(directory, { recursive: true, force: true });
  cpSync(Dir, directory, { recursive: true });
  spawnSync("chmod", ["-R", "u+w", directory]);
  for (const { file, from, to } of edits) {
    const path = join(directory, file);
    const text = readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${agent}: ${file} has no ${from}`);
    writeFileSync(path, text.replace(from, to));
  }
  if (modEdit.length > 0) go(["mod", "edit", ...modEdit], directory);
  console.log(`${agent}: is being built`);
  const result = go(["build", "-o", made.program, main], directory);
  if (result.status === 0) {
    chmodSync(made.program, 0o755);
    return made;
  }
  console.log(`${agent}: skipped: it does not build\n${result.stderr.slice(-2000)}`);
  return undefined;
}

/** A process of an operator. */
export class Process {
  log = "";
  readonly #command: string;
  readonly #args: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #show: boolean;
  #child: ChildProcess | undefined;

  constructor({ program }: Built, { args, env }: Operator, kubeconfig: string, show: boolean) {
    this.#command = program;
    this.#args = args;
    this.#env = env(kubeconfig);
    this.#show = show;
  }

  start(): void {
    this.log = "";
    const child = spawn(this.#command, this.#args, {
      env: { ...process.env, ...this.#env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const take = (chunk: Buffer): void => {
      if (this.#child !== child) return;
      this.log = (this.log + chunk.toString()).slice(-1_000_000);
      if (this.#show) process.stderr.write(chunk);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** As a crash. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }
}

/** Runs scenarios with one kubectl on one server. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { normalise } from "./normalise.ts";
import { formatOutcomes, type Outcome, type Scenario, type Step } from "./scenario.ts";

/** A kubectl and the server that it uses. */
export interface Stage {
  readonly kubectl: string;
  readonly kubeconfig: string;
}

const COMMAND_LIMIT_MS = 30_000;
const LINES_LIMIT_MS = 15_000;
const MAX_OUTPUT_BYTES = 1 << 26;

/** The output of a scenario, normalised. */
export async function runScenario(stage: Stage, scenario: Scenario): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "kubectl-"));
  const runner = new Runner(stage, directory);
  try {
    for (const step of scenario.steps) await runner.run(step);
    return normalise(formatOutcomes(runner.outcomes).replaceAll(directory, "<directory>"));
  } finally {
    runner.close();
    rmSync(directory, { recursive: true });
  }
}

/** A command that runs while others do. */
interface Background {
  readonly child: ChildProcess;
  readonly line: string;
  stdout: string;
  stderr: string;
}

class Runner {
  readonly outcomes: Outcome[] = [];
  readonly #stage: Stage;
  readonly #directory: string;
  #background: Background | undefined;

  constructor(stage: Stage, directory: string) {
    this.#stage = stage;
    this.#directory = directory;
  }

  async run(step: Step): Promise<void> {
    if (step.kind === "file") writeFileSync(join(this.#directory, step.text), step.content);
    else if (step.kind === "run") await this.#command(step.text);
    else if (step.kind === "background") this.#start(step.text);
    else if (step.kind === "until") await this.#until(Number(step.text));
    else await this.#stop(Number(step.text));
  }

  close(): void {
    this.#background?.child.kill("SIGKILL");
  }

  /** The shell splits the line and sets its variables. */
  #shell(line: string): [string, string[], object] {
    const [, variables, args] = /^((?:[A-Z_]+=(?:'[^']*'|\S*) )*)(.*)$/s.exec(line)!;
    const { kubectl, kubeconfig } = this.#stage;
    const script = `${variables}exec ${kubectl} ${args}`;
    const env = {
      PATH: process.env["PATH"],
      HOME: this.#directory,
      KUBECONFIG: kubeconfig,
      KUBECTL_HEADERS: "",
      TERM: "dumb",
    };
    return ["/bin/sh", ["-c", script], { cwd: this.#directory, env }];
  }

  /** Never blocks: the server may be in this process. */
  #command(line: string): Promise<void> {
    const [program, args, options] = this.#shell(line);
    const limits = { timeout: COMMAND_LIMIT_MS, maxBuffer: MAX_OUTPUT_BYTES };
    return new Promise((resolve) => {
      const child = execFile(program, args, { ...options, ...limits }, (_, stdout, stderr) => {
        const text = line.startsWith("explain ") ? withoutDescriptions(stdout) : stdout;
        this.outcomes.push({ line, exit: child.exitCode ?? -1, stdout: text, stderr });
        resolve();
      });
    });
  }

  #start(line: string): void {
    const [program, args, options] = this.#shell(line);
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const background: Background = { child, line, stdout: "", stderr: "" };
    child.stdout.on("data", (data) => (background.stdout += String(data)));
    child.stderr.on("data", (data) => (background.stderr += String(data)));
    this.#background = background;
  }

  /** Waits for lines of the command in the background. */
  #until(lines: number): Promise<void> {
    const background = this.#background!;
    const { child } = background;
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(limit);
        resolve();
      };
      const limit = setTimeout(finish, LINES_LIMIT_MS);
      const check = (): void => {
        if (background.stdout.split("\n").length > lines) finish();
      };
      child.stdout!.on("data", check);
      child.once("close", finish);
      check();
    });
  }

  async #stop(lines: number): Promise<void> {
    await this.#until(lines);
    const { child, line, stdout, stderr } = this.#background!;
    child.kill("SIGKILL");
    this.#background = undefined;
    this.outcomes.push({ line: `& ${line}`, exit: 0, stdout, stderr });
  }
}

/** The descriptions of fields are our own. */
function withoutDescriptions(text: string): string {
  return text.replace(/^ {4,}(?!.*\t<).*\n/gm, "");
}

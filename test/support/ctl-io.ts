/**
 * A world for quoratectl and quorateutl when they run in the test's process: what they print is
 * kept, what they ask for is given.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type ChildEnd, type Io, type Program, runProgram, type StopSignal } from "@quorate/cli";

/** What a program printed and how it ended. */
export interface ProgramResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Buffer;
}

export interface ProgramWorld extends Partial<Io> {
  /** What stands on standard input. */
  readonly input?: string | Uint8Array;
  /** Called with each piece as it is printed. */
  readonly onStdout?: (text: string) => void;
  /** Called with each piece of standard error. */
  readonly onStderr?: (text: string) => void;
}

/** A command line that goes on until it is stopped. */
export class LiveRun {
  readonly result: Promise<ProgramResult>;
  /** What was printed so far. */
  stdout = "";
  stderr = "";
  #arrived: () => void = () => {};
  readonly #stops = new Set<(signal: StopSignal) => void>();

  constructor(program: Program, args: readonly string[], world: ProgramWorld = {}) {
    this.result = runInProcess(program, args, {
      onStdout: (text) => {
        this.stdout += text;
        this.#arrived();
      },
      onStderr: (text) => {
        this.stderr += text;
        this.#arrived();
      },
      onStop: (stop) => {
        this.#stops.add(stop);
        return () => this.#stops.delete(stop);
      },
      ...world,
    });
  }

  /**
   * Resolves when `shows` holds of what was printed so far; fails if the program ends before, or
   * after two minutes.
   */
  async until(shows: (stdout: string, stderr: string) => boolean): Promise<void> {
    const late = AbortSignal.timeout(120_000);
    const ended = this.result.then(() => "ended");
    while (!shows(this.stdout, this.stderr)) {
      const arrived = new Promise<string>((resolve) => {
        this.#arrived = () => resolve("arrived");
        late.onabort = () => resolve("late");
      });
      const first = await Promise.race([arrived, ended]);
      if (first === "arrived" || shows(this.stdout, this.stderr)) continue;
      throw new Error(
        `${first}; it printed ${JSON.stringify(this.stdout)} and ${JSON.stringify(this.stderr)}`,
      );
    }
  }

  /** Sends a signal, and returns how the program ends. */
  stop(signal: StopSignal = "SIGINT"): Promise<ProgramResult> {
    for (const stop of this.#stops) stop(signal);
    return this.result;
  }
}

/** Runs a command line (without the program's name) in this process. */
export async function runInProcess(
  program: Program,
  args: readonly string[],
  world: ProgramWorld = {},
): Promise<ProgramResult> {
  const { input = "", onStdout, onStderr, ...given } = world;
  const out: Buffer[] = [];
  let stderr = "";
  const io: Io = {
    stdout(content) {
      const bytes = Buffer.from(content as Uint8Array);
      out.push(bytes);
      onStdout?.(bytes.toString());
    },
    stderr(text) {
      stderr += text;
      onStderr?.(text);
    },
    stderrIsTerminal: false,
    stdin: (async function* () {
      if (input.length > 0) yield Buffer.from(input as Uint8Array);
    })(),
    env: {},
    readFile: (path) => readFileSync(path),
    nowNs: () => process.hrtime.bigint(),
    sleep: (delayMs) => delay(delayMs),
    onStop: () => () => {},
    run(command, env) {
      const child = spawn(command[0], command.slice(1), {
        env: { PATH: process.env["PATH"], ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      child.stdout.on("data", (bytes: Buffer) => io.stdout(bytes));
      child.stderr.on("data", (bytes: Buffer) => io.stderr(bytes.toString()));
      const ended = new Promise<ChildEnd>((resolve) => {
        child.on("error", ({ message }) => resolve({ code: 1, error: message }));
        child.on("close", (code) =>
          resolve({ code: code ?? 255, error: code === 0 ? undefined : `exit status ${code}` }),
        );
      });
      return { ended, kill: (signal) => void child.kill(signal) };
    },
    askPassword: () => Promise.reject(new Error("no password is needed")),
    ...given,
  };
  const code = await runProgram(program, args, io);
  const stdoutBytes = Buffer.concat(out);
  return { code, stdout: stdoutBytes.toString(), stderr, stdoutBytes };
}

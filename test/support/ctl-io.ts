/** A world for quoratectl and quorateutl when they run in the test's process: what they print is kept, what they ask for is given. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type ChildEnd, type Io, type Program, runProgram } from "@quorate/ctl";

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
  /** Told of each piece as it is printed. */
  readonly onStdout?: (text: string) => void;
  /** Told of each piece of standard error. */
  readonly onStderr?: (text: string) => void;
}

/** Runs a command line (without the program's name) in this process. */
export async function runInProcess(program: Program, args: readonly string[], world: ProgramWorld = {}): Promise<ProgramResult> {
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
      const child = spawn(command[0]!, command.slice(1), { env: { PATH: process.env["PATH"], ...env }, stdio: ["ignore", "pipe", "pipe"] });
      child.stdout.on("data", (bytes: Buffer) => io.stdout(bytes));
      child.stderr.on("data", (bytes: Buffer) => io.stderr(bytes.toString()));
      const ended = new Promise<ChildEnd>((resolve) => {
        child.on("error", ({ message }) => resolve({ code: 1, error: message }));
        child.on("close", (code) => resolve({ code: code ?? 255, error: code === 0 ? undefined : `exit status ${code}` }));
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

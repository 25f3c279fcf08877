/**
 * The programs whose command lines are compared: as processes, or quoratectl and quorateutl inside
 * this process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Readable } from "node:stream";
import { type Program, passwordPrompt, processIo, runProgram } from "@quorate/cli";
import type { Words } from "./scenario.ts";

/** How a command line ended. */
export interface Result {
  /** The exit code, or the signal or limit that ended it. */
  readonly exit: number | string;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/** A command line under way. */
export interface Running {
  /** Resolves when so many lines were printed, or at its end. */
  printed(lines: number): Promise<void>;
  /** Ends it by SIGINT if `stop`, and returns the outcome. */
  end(stop: boolean): Promise<Result>;
}

/** A program that can be run. */
export interface Tool {
  start(words: Words, input: string, directory: string): Running;
}

/** Nothing takes as long, on a machine that has much else to do. */
const LIMIT_MS = 60_000;

const alive = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

/** A program as processes. @param command its path and first arguments */
export function processTool(command: readonly string[]): Tool {
  return {
    start(words, input, directory) {
      const child = spawn(command[0], [...command.slice(1), ...words.args], {
        cwd: directory,
        env: {
          PATH: process.env["PATH"],
          HOME: process.env["HOME"],
          ETCDCTL_API: "3",
          ...words.env,
        },
      });
      alive.add(child);
      const output = new Output();
      let stderr = "";
      let late = false;
      child.stdout.on("data", (piece: Buffer) => output.add(piece));
      child.stderr.on("data", (piece: Buffer) => (stderr += piece.toString()));
      // One that refuses its command line does not read on.
      child.stdin.on("error", () => {});
      child.stdin.end(input);
      const timer = setTimeout(() => {
        late = true;
        child.kill("SIGKILL");
      }, LIMIT_MS);
      const ended = new Promise<number | string>((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code, signal) =>
          resolve(late ? `not within ${LIMIT_MS / 1000} s` : (code ?? signal ?? "?")),
        );
      }).finally(() => {
        clearTimeout(timer);
        alive.delete(child);
      });
      return {
        printed: (lines) => Promise.race([output.lines(lines), ended.then(() => {})]),
        async end(stop) {
          if (stop) child.kill("SIGINT");
          const exit = await ended;
          return { exit, stdout: output.bytes, stderr };
        },
      };
    },
  };
}

/** A program of ours inside this process, which is many times quicker to start. */
export function innerTool(program: Program): Tool {
  return {
    start(words, input) {
      const output = new Output();
      let stderr = "";
      let stop: (signal: "SIGINT") => void = () => {};
      const ended = runProgram(program, words.args, {
        ...processIo,
        stdout: (content) =>
          output.add(typeof content === "string" ? Buffer.from(content) : content),
        stderr: (text) => void (stderr += text),
        stderrIsTerminal: false,
        askPassword: passwordPrompt(Readable.from([Buffer.from(input)]), (text) =>
          output.add(Buffer.from(text)),
        ),
        stdin: (async function* () {
          yield Buffer.from(input);
        })(),
        env: { ETCDCTL_API: "3", ...words.env },
        onStop(handler) {
          stop = handler;
          return () => {};
        },
      });
      const limited = limit(ended);
      return {
        printed: (lines) => Promise.race([output.lines(lines), limited.then(() => {})]),
        async end(stopIt) {
          if (stopIt) stop("SIGINT");
          return { exit: await limited, stdout: output.bytes, stderr };
        },
      };
    },
  };
}

async function limit(ended: Promise<number>): Promise<number | string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`not within ${LIMIT_MS / 1000} s`), LIMIT_MS);
  });
  try {
    return await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What is printed, and who waits for lines of it. */
class Output {
  readonly #pieces: Uint8Array[] = [];
  #count = 0;
  #waiting: { lines: number; resolve: () => void } | undefined;

  get bytes(): Uint8Array {
    return Buffer.concat(this.#pieces);
  }

  add(piece: Uint8Array): void {
    this.#pieces.push(piece);
    for (const byte of piece) if (byte === 10) this.#count++;
    if (this.#waiting !== undefined && this.#count >= this.#waiting.lines) this.#waiting.resolve();
  }

  lines(lines: number): Promise<void> {
    if (this.#count >= lines) return Promise.resolve();
    return new Promise((resolve) => (this.#waiting = { lines, resolve }));
  }
}

/**
 * Io over this process. What takes Node milliseconds to make is made when a command asks for it:
 * standard input, child processes.
 */
import { readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ChildEnd,
  type ChildRun,
  ExitCode,
  type Io,
  systemReason,
  type Terminal,
} from "./io.ts";
import { passwordPrompt } from "./password-prompt.ts";

/**
 * A key as a terminal sends it: an escape sequence, as for an arrow, or a character.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: such sequences begin with one
const KEY = /\u001b\[[\d;]*[A-Za-z~]|\u001bO[A-Za-z]|[\s\S]/gu;

/** Escape sequences of the alternate screen without a cursor, and back. */
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[H";
const LEAVE = "\u001b[?25h\u001b[?1049l";

/** The terminal of standard output; keys come from standard input if that is a terminal too. */
function terminalOf({ stdout }: typeof process): Terminal | undefined {
  if (stdout.isTTY !== true) return undefined;
  return {
    enter() {
      // The process is ending: only synchronous writes still happen.
      const leaveAtOnce = (): void => void writeSync(stdout.fd, LEAVE);
      process.on("exit", leaveAtOnce);
      stdout.write(ENTER);
      return () => {
        process.off("exit", leaveAtOnce);
        // After the pending output of a slow terminal, which would otherwise appear on the shell's
        // screen.
        stdout.write(LEAVE);
      };
    },
    isBehind: () => stdout.writableLength > 0,
    size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
    onResize(changed) {
      stdout.on("resize", changed);
      return () => void stdout.off("resize", changed);
    },
    onKey(typed) {
      const { stdin } = process;
      if (stdin.isTTY !== true) return undefined;
      const onData = (piece: Buffer): void => {
        for (const [key] of piece.toString("utf8").matchAll(KEY)) typed(key);
      };
      stdin.setRawMode(true);
      stdin.on("data", onData);
      return () => {
        stdin.off("data", onData);
        stdin.setRawMode(false);
        stdin.pause();
      };
    },
  };
}

/** The exit code of a program that SIGPIPE ends: 128 plus the signal's number. */
const PIPE_CLOSED = 141;

// The reader has closed the pipe (head, grep -q): end silently, as SIGPIPE ends other programs.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(PIPE_CLOSED);
  process.stderr.write(`Error: cannot write to standard output: ${systemReason(error)}\n`);
  process.exit(ExitCode.error);
});
/** Go's text for the end of a program. */
function endOf(code: number | null, signal: NodeJS.Signals | null): ChildEnd {
  if (signal !== null) return { code: 255, error: `signal: ${signalNames[signal] ?? signal}` };
  return { code: code ?? 1, error: code === 0 ? undefined : `exit status ${code}` };
}

const signalNames: Partial<Record<NodeJS.Signals, string>> = {
  SIGINT: "interrupt",
  SIGTERM: "terminated",
  SIGKILL: "killed",
  SIGHUP: "hangup",
};

function runChild(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ChildRun {
  const [name, ...args] = command as [string, ...string[]];
  const { spawn } = process.getBuiltinModule("node:child_process");
  const child = spawn(name, args, { env, stdio: ["ignore", "inherit", "inherit"] });
  const ended = new Promise<ChildEnd>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === "ENOENT" && !name.includes("/")
          ? `exec: ${JSON.stringify(name)}: executable file not found in $PATH`
          : `fork/exec ${name}: ${reasonOf(error)}`;
      resolve({ code: 1, error: reason });
    });
    child.on("close", (code, signal) => resolve(endOf(code, signal)));
  });
  return { ended, kill: (signal) => void child.kill(signal) };
}

/** The system's text for an error of Node, such as "no such file or directory". */
function reasonOf(error: NodeJS.ErrnoException): string {
  const words: Readonly<Record<string, string>> = {
    ENOENT: "no such file or directory",
    EACCES: "permission denied",
  };
  return words[error.code ?? ""] ?? error.message;
}

let askPassword: Io["askPassword"] | undefined;

export const processIo: Io = {
  stdout: (content) => void process.stdout.write(content),
  stderr: (text) => void process.stderr.write(text),
  stderrIsTerminal: process.stderr.isTTY === true,
  terminal: terminalOf(process),
  get stdin() {
    return process.stdin;
  },
  env: process.env,
  readFile(path) {
    try {
      return readFileSync(path);
    } catch (error) {
      throw new Error(systemReason(error));
    }
  },
  nowNs: () => process.hrtime.bigint(),
  sleep: (delayMs) => sleep(delayMs),
  run: runChild,
  onStop(stop) {
    const signals = ["SIGINT", "SIGTERM"] as const;
    for (const signal of signals) process.on(signal, stop);
    return () => {
      for (const signal of signals) process.off(signal, stop);
    };
  },
  askPassword(prompt) {
    askPassword ??= passwordPrompt(process.stdin, (text) => process.stdout.write(text));
    return askPassword(prompt);
  },
};

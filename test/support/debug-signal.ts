/** Programs that get SIGUSR1, and whether one opens Node's inspector because of it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { endsWith } from "./children.ts";
import { until } from "./until.ts";

/** What Node writes when it opens its inspector, or cannot. */
const INSPECTOR = /Debugger listening|Starting inspector/;

export interface Running {
  readonly child: ChildProcess;
  output(): string;
}

/** Starts a program in `directory`, with its home there. */
export function start(
  t: TestContext,
  directory: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Running {
  const child = endsWith(
    spawn(command[0], command.slice(1), {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: directory,
      env: { PATH: process.env["PATH"], HOME: directory, ...env },
    }),
    t,
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece: Buffer) => (output += piece.toString()));
  return { child, output: () => output };
}

/** The ports on which a process listens, where the system shows them. */
function listening(pid: number): string[] {
  if (!existsSync(`/proc/${pid}/net/tcp`)) return [];
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"]
    .flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, "utf8").trim().split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A" && own.has(fields[9]))
    .map((fields) => fields[1])
    .sort();
}

/** Sends the signal several times, and sees that nothing comes of it. */
export async function isUnmoved({ child, output }: Running): Promise<void> {
  const before = listening(child.pid!);
  for (let i = 0; i < 5; i++) {
    child.kill("SIGUSR1");
    await delay(100);
  }
  assert.deepEqual([child.exitCode, child.signalCode], [null, null], output());
  assert.doesNotMatch(output(), INSPECTOR);
  assert.deepEqual(listening(child.pid!), before);
}

/** Resolves when the program has printed the text; rejects if it ends before. */
export const says = (running: Running, text: RegExp): Promise<void> =>
  until(`${text} in the output`, () => {
    const { exitCode, signalCode } = running.child;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`it ended (${exitCode ?? signalCode}): ${running.output()}`);
    return text.test(running.output());
  });

const BIN = join(import.meta.dirname, "../../bin");

/** The ways an operator starts a program of bin/: their names, and the words before its own. */
export const WAYS: readonly (readonly [name: string, command: (program: string) => string[]])[] = [
  ["by Node", (program) => [process.execPath, join(BIN, program)]],
  ["by name", (program) => [join(BIN, program)]],
];

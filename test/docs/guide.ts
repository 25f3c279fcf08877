/**
 * Runs a guide of docs/: its blocks marked "sh run" and "sh serve", in order, as a reader would paste them into one terminal, in an empty
 * folder, with our programs on PATH. What one block exports the next ones have. Addresses of the guide, 127.0.0.N, become 127.A.B.N for
 * an A and B of this process, so that neither other tests nor a cluster that runs on this machine are in the way.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const blockLimitMs = 120_000;
/** What a member logs when it serves; a serve block is done when as many members as it starts have. */
const readyLine = /ready to serve client requests/g;

/** One block of a guide. */
export interface Block {
  readonly kind: "run" | "serve";
  readonly command: string;
}

/** The blocks that a guide has run, in order. Throws if one is neither marked nor says why it cannot be run. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  for (const { 1: before, 2: mark, 3: command } of markdown.matchAll(/^([^\n]*)\n```sh ?(\w*)\n(.*?)^```$/gms)) {
    if (mark === "run" || mark === "serve") blocks.push({ kind: mark, command: command! });
    else assert.match(before!, /<!-- not run: .+ -->$/, `a block is not run and does not say why:\n${command}`);
  }
  return blocks;
}

/** What a guide's run leaves. */
export interface Outcome {
  /** What the run blocks printed, each with what it is. */
  readonly outputs: readonly { readonly command: string; readonly printed: string }[];
}

/** Runs the guide of that name. Rejects with the block that failed and all that it printed. */
export async function runGuide(name: string): Promise<Outcome> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-guide-"));
  const servers: { child: ChildProcess; exit: Promise<unknown> }[] = [];
  try {
    // Our programs under their names, as an installation puts them on PATH.
    mkdirSync(join(dir, "bin"));
    for (const program of ["quorate", "quoratectl", "quorateutl"]) {
      writeFileSync(join(dir, "bin", program), `#!/bin/sh\nexec ${process.execPath} ${join(root, "bin", `${program}.js`)} "$@"\n`);
      chmodSync(join(dir, "bin", program), 0o755);
    }
    writeFileSync(join(dir, "exports"), "");
    const env = { ...process.env, PATH: `${join(dir, "bin")}:${process.env["PATH"]}` };
    const network = `127.${1 + ((process.pid >> 7) % 250)}.${1 + (process.pid % 127)}.`;
    const outputs: { command: string; printed: string }[] = [];
    for (const { kind, command } of blocksOf(readFileSync(join(root, "docs", name), "utf8"))) {
      const here = command.replaceAll("127.0.0.", network);
      if (kind === "serve") servers.push(await serve(here, dir, env));
      else outputs.push({ command, printed: (await run(here, dir, env)).replaceAll(network, "127.0.0.") });
    }
    return { outputs };
  } finally {
    for (const { child } of servers) if (child.exitCode === null) process.kill(-child.pid!, "SIGKILL");
    await Promise.all(servers.map(({ exit }) => exit));
    rmSync(dir, { recursive: true, force: true });
  }
}

function run(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const text = `source ./exports\n${command}\nexport -p > exports`;
  return new Promise((resolve, reject) => {
    execFile("bash", ["-euo", "pipefail", "-c", text], { cwd, env, timeout: blockLimitMs }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${command}\n${error.message}\n${stdout}\n${stderr}`)),
    );
  });
}

/** Starts a block that stays, in a process group of its own; resolves when it serves. */
async function serve(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<{ child: ChildProcess; exit: Promise<unknown> }> {
  const child = spawn("bash", ["-c", `source ./exports\n${command}`], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const exit = new Promise((resolve) => child.on("exit", resolve));
  const members = Number(/^for i in ([\d ]+);/m.exec(command)?.[1]?.trim().split(/ +/).length ?? 1);
  let output = "";
  const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), blockLimitMs);
  const ready = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if ((output.match(readyLine)?.length ?? 0) >= members) resolve();
      });
    }
    void exit.then(() => reject(new Error(`${command}ended:\n${output}`)));
  });
  await ready.finally(() => clearTimeout(timer));
  return { child, exit };
}

/** Why guides cannot be run here, or false. */
export const skipGuides: string | false = process.platform === "linux" ? false : "the guides use 127.0.0.2 and so on, which only Linux has";

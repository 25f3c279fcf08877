/**
 * Runs a guide of docs/: its blocks marked "sh run" and "sh serve", in order, as a reader would
 * paste them into one terminal, in an empty directory, with our programs on PATH. What one block
 * exports the next ones have. Addresses of the guide, 127.0.0.N, become 127.A.B.N for an A and B of
 * this process, so that neither other tests nor a cluster that runs on this machine are in the way.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "../..");

/** One block of a guide. */
export interface Block {
  readonly kind: "run" | "serve";
  readonly command: string;
}

/**
 * The blocks that a guide has run, in order. Throws if one is neither marked nor says why it cannot
 * be run.
 */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  for (const { 1: before, 2: mark, 3: command } of markdown.matchAll(
    /^([^\n]*)\n```sh ?(\w*)\n(.*?)^```$/gms,
  )) {
    if (mark === "run" || mark === "serve") blocks.push({ kind: mark, command: command });
    else
      assert.match(
        before,
        /<!-- not run: .+ -->$/,
        `a block is not run and does not say why:\n${command}`,
      );
  }
  return blocks;
}

/** A guide that was run: what its blocks printed, with plain ends of lines. */
export interface RunGuide {
  readonly outputs: readonly { readonly command: string; readonly printed: string }[];
  /** What the block printed whose command contains `part`. Throws unless it is one. */
  printed(part: string): string;
}

/**
 * Runs the guide of that name. Rejects with the block that failed.
 * @param variables what its blocks find besides the variables of the test
 */
export async function runGuide(
  name: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<RunGuide> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-guide-"));
  // Our programs under their names, as an installation puts them on PATH.
  mkdirSync(join(dir, "bin"));
  for (const program of ["quorate", "quoratectl", "quorateutl"]) {
    writeFileSync(
      join(dir, "bin", program),
      `#!/bin/sh\nexec ${process.execPath} ${join(root, "bin", `${program}.js`)} "$@"\n`,
    );
    chmodSync(join(dir, "bin", program), 0o755);
  }
  const env = { ...process.env, ...variables };
  const terminal = new Terminal(dir, { ...env, PATH: `${join(dir, "bin")}:${env.PATH}` });
  try {
    const network = `127.${1 + ((process.pid >> 7) % 250)}.${1 + (process.pid % 128)}.`;
    const outputs: { command: string; printed: string }[] = [];
    for (const { kind, command } of blocksOf(readFileSync(join(root, "docs", name), "utf8"))) {
      const here = command.replaceAll("127.0.0.", network);
      if (kind === "serve") await terminal.serve(here);
      else
        outputs.push({
          command,
          printed: (await terminal.run(here)).replaceAll(network, "127.0.0."),
        });
    }
    return {
      outputs,
      printed(part) {
        const found = outputs.filter(({ command }) => command.includes(part));
        assert.equal(found.length, 1, `one block has ${part}`);
        return found[0].printed.replaceAll("\r", "");
      },
    };
  } finally {
    await terminal.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Why guides cannot be run here, or false. */
export const skipGuides: string | false =
  process.platform === "linux" ? false : "the guides use 127.0.0.2 and so on, which only Linux has";

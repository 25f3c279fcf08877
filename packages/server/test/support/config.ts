/** Command lines of members, read and refused. */
import assert from "node:assert/strict";
import { loadConfig } from "../../src/config/load.ts";
import type { Notice, ServerConfig } from "../../src/config/server-config.ts";

/** A configuration that was read, and what is logged about it. */
export type Run = { config: ServerConfig; notices: readonly Notice[] };

/** Reads files from memory. */
export function reader(files: Record<string, string>): (path: string) => string {
  return (path) => {
    const text = files[path];
    if (text === undefined) throw new Error("no such file");
    return text;
  };
}

/** Reads a command line that starts a member. */
export async function run(
  argv: string[],
  env: Record<string, string> = {},
  files: Record<string, string> = {},
): Promise<Run> {
  const invocation = await loadConfig(argv, env, reader(files));
  assert.equal(invocation.kind, "run");
  return invocation as Run & { kind: "run" };
}

/** Asserts that a command line is refused with this code and message. */
export async function refused(
  code: string,
  message: string | RegExp,
  argv: string[],
  env: Record<string, string> = {},
  files: Record<string, string> = {},
) {
  await assert.rejects(
    loadConfig(argv, env, reader(files)),
    (error: { code?: string; message: string }) => {
      assert.equal(error.code, code, error.message);
      if (typeof message === "string") assert.equal(error.message, message);
      else assert.match(error.message, message);
      return true;
    },
  );
}

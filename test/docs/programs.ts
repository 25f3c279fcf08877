/** The programs of a page that are for Node.js. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";

const root = join(import.meta.dirname, "../..");

/** A page whose programs use the client's package besides its own page. */
export const MIGRATION = "docs/guide/migration-from-etcd3.md";

/** The programs of a page, each with what it prints. */
export function programsOf({ page: path }: { readonly page: string }): {
  program: string;
  output: string;
}[] {
  const page = readFileSync(join(root, path), "utf8");
  const blocks = /```js run\n([\s\S]*?)```\n\n```text output\n([\s\S]*?)```/g;
  return [...page.matchAll(blocks)].map(([, program = "", output = ""]) => ({ program, output }));
}

/** The same with a name, of several pages. */
export function namedPrograms(pages: readonly string[]) {
  return pages.flatMap((page) =>
    programsOf({ page }).map((one, index) => ({ ...one, name: `program ${index + 1} of ${page}` })),
  );
}

/** A program for a runtime without `await using`. */
export async function forOldRuntime(program: string): Promise<string> {
  return (await transform(program, { format: "esm", target: "node20" })).code;
}

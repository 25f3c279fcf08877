/** The programs of a release: what starts them and with which flags for Node. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The repository's root. */
export const root = join(import.meta.dirname, "../..");

/** One program of a release. */
export interface ReleaseProgram {
  readonly name: string;
  /** The file that is bundled, from the root. */
  readonly file: string;
  /** True if the file exports `main`, which runs the program; else importing it does. */
  readonly hasMain: boolean;
  /** True for one whose compiled code is kept in the user's cache directory between runs. */
  readonly keepsCode: boolean;
  /** Flags for Node. */
  readonly flags: readonly string[];
  /** For the environment, where they are not set. */
  readonly variables: Readonly<Record<string, string>>;
}

/** The call of launch() in a file of bin/: program, file, flags and variables. */
const LAUNCH = "\nawait launch(";

/**
 * The programs behind bin/ of a release, in order. The first three are those of this repository's
 * bin/, read from there.
 */
export function releasePrograms(): ReleaseProgram[] {
  const own = ["quorate", "quoratectl", "quorateutl"].map((name): ReleaseProgram => {
    const path = join(root, `bin/${name}.js`);
    const text = readFileSync(path, "utf8");
    const [call] = (text.split(LAUNCH, 2)[1] ?? "").split(");", 1);
    const [program, file] = textsIn(call);
    if (program !== name || file === undefined)
      throw new Error(`${path} does not start ${name} as expected`);
    const flags = textsIn(/\[([^[\]]*)\]/.exec(call)?.[1] ?? "");
    const pairs = (/\{([^{}]*)\}/.exec(call)?.[1] ?? "").matchAll(/\b(\w+): "([^"]*)"/g);
    const variables = Object.fromEntries([...pairs].map((match) => [match[1], match[2]]));
    return {
      name,
      file,
      flags,
      variables,
      keepsCode: true,
      hasMain: /^export async function main\(/m.test(readFileSync(join(root, file), "utf8")),
    };
  });
  return [
    ...own,
    {
      name: "quorate-cluster",
      file: "scripts/cluster.ts",
      keepsCode: false,
      flags: [],
      variables: {},
      hasMain: false,
    },
    {
      name: "quorate-certs",
      file: "scripts/certs/main.ts",
      keepsCode: false,
      flags: [],
      variables: {},
      hasMain: false,
    },
  ];
}

/** The texts in double quotes, in order. */
function textsIn(code: string): string[] {
  return [...code.matchAll(/"([^"]+)"/g)].map((match) => match[1]);
}

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
const LAUNCH =
  /^await launch\(\s*"(\w+)",\s*"([^"]+)",?\s*(?:\[([^\]]*)\],?\s*)?(?:\{([^}]*)\},?\s*)?\);$/m;

/**
 * The programs behind bin/ of a release, in order. The first three are those of this repository's
 * bin/, read from there.
 */
export function releasePrograms(): ReleaseProgram[] {
  const own = ["quorate", "quoratectl", "quorateutl"].map((name): ReleaseProgram => {
    const path = join(root, `bin/${name}.js`);
    const text = readFileSync(path, "utf8");
    const call = LAUNCH.exec(text);
    if (call === null || call[1] !== name)
      throw new Error(`${path} does not start ${name} as expected`);
    const file = call[2];
    const flags = [...(call[3] ?? "").matchAll(/"([^"]+)"/g)].map((match) => match[1]);
    const variables = Object.fromEntries(
      [...(call[4] ?? "").matchAll(/(\w+): "([^"]*)"/g)].map((match) => [match[1], match[2]]),
    );
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

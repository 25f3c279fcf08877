/**
 * The small shell scripts in bin/ of a release: each finds its directory, also through a link, and
 * becomes Node with the program.
 */
import { defined } from "@quorate/proto";
import type { Platform } from "./platform.ts";
import type { ReleaseProgram } from "./programs.ts";

const isHeapLimit = (flag: string): boolean => flag.startsWith("--max-old-space-size");
const isNoHeapLimit = (flag: string): boolean => !isHeapLimit(flag);

/**
 * The script that starts `program`. `libatomic` is the directory, from the release's, of a
 * libatomic for systems that have none.
 */
export function launcherText(
  program: ReleaseProgram,
  platform: Platform,
  libatomic: string | undefined,
): string {
  const lines = [
    "#!/bin/sh",
    `# Starts ${program.name} on the Node of this directory.`,
    "f=$0",
    'if [ -h "$f" ]; then f=$(readlink -f "$f"); fi',
    `case $f in */*) d=\${f%/*} ;; *) d=. ;; esac`,
    'd=$(cd -P "$d/.." && pwd) || exit 1',
  ];
  if (libatomic !== undefined) {
    const places = [
      `/usr/lib/${defined(platform.libatomic, "the libatomic").directory}`,
      `/lib/${defined(platform.libatomic, "the libatomic").directory}`,
      "/usr/lib64",
      "/lib64",
      "/usr/lib",
    ];
    lines.push(
      "# Node needs libatomic, which not every system has.",
      `if ! { ${places.map((place) => `[ -e ${place}/libatomic.so.1 ]`).join(" || ")}; }; then`,
      `  export LD_LIBRARY_PATH="$d/${libatomic}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
      "fi",
    );
  }
  if (program.keepsCode) {
    lines.push(
      "# Node keeps compiled code between runs: a sixth of the time of a short command or a start.",
      `if [ -n "\${HOME:-}" ]; then export NODE_COMPILE_CACHE="\${NODE_COMPILE_CACHE:-\${XDG_CACHE_HOME:-$HOME/.cache}/quorate}"; fi`,
    );
  }
  for (const [name, value] of Object.entries(program.variables))
    lines.push(`export ${name}="\${${name}:-${value}}"`);
  const [heap, flags] = [program.flags.find(isHeapLimit), program.flags.filter(isNoHeapLimit)];
  if (heap !== undefined) {
    lines.push(
      "# A limit of the heap in NODE_OPTIONS is the user's; the flag would win over it.",
      `h=${heap}`,
      `case "\${NODE_OPTIONS:-}" in *--max[-_]old[-_]space[-_]size*) h= ;; esac`,
    );
  }
  const words = ['"$d/lib/node"', "$s", ...(heap === undefined ? [] : ["$h"]), ...flags];
  lines.push(
    "# SIGUSR1 would open Node's inspector to every local user; NODE_OPTIONS may name its port.",
    "s=--disable-sigusr1",
    `case "\${NODE_OPTIONS:-}" in *--inspect* | *--debug-port*) s= ;; esac`,
    `exec ${words.join(" ")} "$d/lib/${program.name}.mjs" "$@"`,
    "",
  );
  return lines.join("\n");
}

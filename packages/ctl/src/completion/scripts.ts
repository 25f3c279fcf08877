/**
 * Completion scripts, generated from a program's declarations. They need only the shell and start
 * no process while a line is typed.
 */
import type { Program } from "@quorate/cli";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { positionsOf } from "./model.ts";
import { powershellScript } from "./powershell.ts";
import { zshScript } from "./zsh.ts";

const makers = { bash: bashScript, zsh: zshScript, fish: fishScript, powershell: powershellScript };

/** The script for one shell, to be sourced or installed in the shell's directory. */
export function completionScript(program: Program, shell: keyof typeof makers): string {
  return makers[shell](program.name, positionsOf(program));
}

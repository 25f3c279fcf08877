/**
 * Completion scripts, made from a program's declarations. They need nothing but the shell, and
 * start no program while a line is typed.
 */
import type { Program } from "../command.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { placesOf } from "./model.ts";
import { powershellScript } from "./powershell.ts";
import { zshScript } from "./zsh.ts";

const makers = { bash: bashScript, zsh: zshScript, fish: fishScript, powershell: powershellScript };

/** The script for one shell, to be sourced or put where the shell looks for such. */
export function completionScript(program: Program, shell: keyof typeof makers): string {
  return makers[shell](program.name, placesOf(program));
}

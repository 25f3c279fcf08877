/** A shadow as a program. */
export { shadowProgram } from "./program.ts";
export { runShadowCommand } from "./run-command.ts";

/** A shadow as a program. */
export { shadowProgram } from "./program.ts";

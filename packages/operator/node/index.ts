/** The operator over sockets, and as a program. */
export { operatorProgram } from "./program.ts";

/** The operator over sockets, and as a program. */
export { nodeCertifier } from "./certifier.ts";
export { operatorProgram } from "./program.ts";
export { runOperatorCommand } from "./run-command.ts";

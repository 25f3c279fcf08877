/** The operator over sockets, and as a program. */
export { nodeCertifier } from "./certifier.ts";
export { operatorProgram } from "./program.ts";

/** The entry point of quorate. */
export { proxyProgram } from "./commands.ts";

/** The part of quorate that needs Node. */
export { proxyProgram } from "./commands.ts";
export { envtestDirectory, envtestScript } from "./envtest.ts";

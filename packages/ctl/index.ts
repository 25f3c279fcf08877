/**
 * The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a
 * stopped member.
 */
export {
  type Access,
  accessOf,
  clientOf,
  endpointsOf,
  globalFlags,
} from "./src/connect/globals.ts";
export { logIn } from "./src/connect/login.ts";
export type { Finding, Note } from "./src/doctor/finding.ts";
export { humanReport, jsonReport } from "./src/doctor/report.ts";
export type { Joiner } from "./src/joining/diagnose.ts";
export { checkJoin, checkStored, type JoinAccess, type JoinCheck } from "./src/joining/look.ts";
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";

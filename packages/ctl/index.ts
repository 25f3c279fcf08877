/**
 * The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a
 * stopped member.
 */
export { asExit } from "./src/connect/failed-call.ts";
export { globalFlags } from "./src/connect/global-flags.ts";
export {
  type Access,
  accessOf,
  clientOf,
  endpointsOf,
} from "./src/connect/globals.ts";
export { type Finding, hasErrors, type Note } from "./src/doctor/finding.ts";
export { humanReport, jsonReport } from "./src/doctor/report.ts";
export type { Joiner } from "./src/joining/diagnose.ts";
export {
  checkJoin,
  checkStored,
  type JoinAccess,
  type JoinCheck,
  membersEndpoints,
} from "./src/joining/look.ts";
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";

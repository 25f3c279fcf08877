/**
 * The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a
 * stopped member.
 */
export { asExit } from "./src/connect/failed-call.ts";
export { globalFlags } from "./src/connect/global-flags.ts";
export { accessOf, clientOf, endpointsOf } from "./src/connect/globals.ts";
export { hasErrors } from "./src/doctor/finding.ts";
export { humanReport, jsonReport } from "./src/doctor/report.ts";
export {
  checkJoin,
  checkStored,
  type JoinAccess,
  type JoinCheck,
  membersEndpoints,
} from "./src/joining/look.ts";
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";

/**
 * The command lines: quoratectl talks to a running cluster, quorateutl works on the files of a
 * stopped member.
 */
export { quoratectl } from "./src/quoratectl.ts";
export { quorateutl } from "./src/quorateutl.ts";

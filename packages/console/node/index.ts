/** The files of the console's page. */
export { pageFiles } from "./page-files.ts";

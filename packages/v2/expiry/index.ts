/** What each member needs of the v2 API, whether it is on or not: directories in its data end. */
export { directoryExpiry } from "../src/expiry.ts";

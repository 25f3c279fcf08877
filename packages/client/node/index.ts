/** The entry point of client. */
export { type ClientOptions, connect, type TlsOptions } from "./connect.ts";

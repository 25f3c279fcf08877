/** The part of client that needs Node. */
export { type ClientOptions, connect, type TlsOptions } from "./connect.ts";

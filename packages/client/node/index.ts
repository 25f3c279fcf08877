/** The part of client that needs Node. */
export { type Link, LinkError } from "../src/link.ts";
export {
  type ClientOptions,
  type ClientParts,
  clientOver,
  connect,
  type TlsOptions,
} from "./connect.ts";
export { LocalLink, type LocalServices } from "./local-link.ts";

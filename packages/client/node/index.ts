/** The part of client that needs Node. */
export { discoverEndpoints, type LookupSrv } from "../src/discovery.ts";
export { type Link, LinkError, type LinkStream } from "../src/link.ts";
export {
  type ClientOptions,
  type ClientParts,
  clientOver,
  connect,
  type TlsOptions,
} from "./connect.ts";
export { EngineStream } from "./engine-link.ts";
export { LocalLink, type LocalServices } from "./local-link.ts";

/**
 * Platform interfaces: time, randomness, disk, network and logs. node/ implements them; testing/
 * has fakes and the contract suites.
 */
export * from "./src/advice.ts";
export * from "./src/backoff.ts";
export { BriefMap, BriefSet } from "./src/brief-map.ts";
export * from "./src/checks.ts";
export * from "./src/clock.ts";
export * from "./src/connection-slots.ts";
export { type DerElement, derElements } from "./src/der.ts";
export * from "./src/disk.ts";
export * from "./src/duration.ts";
export { Heap } from "./src/heap.ts";
export { type BodyRefusal, HeldBody } from "./src/held-body.ts";
export { hostOfAddress, joinHostPort, splitHostPort } from "./src/host-port.ts";
export { type HttpHandler, type HttpRequest, type HttpResponse, plainError } from "./src/http.ts";
export {
  type HttpExchange,
  type HttpExchangeHandler,
  type HttpExchangeListener,
  type HttpHead,
  type HttpTunnel,
  wholeBody,
} from "./src/http-exchange.ts";
export * from "./src/keyspace.ts";
export { LineLimit } from "./src/line-limit.ts";
export * from "./src/logger.ts";
export type { Names, SrvTarget } from "./src/names.ts";
export { keepNewest, setNewest } from "./src/newest.ts";
export { EXCHANGE_FILE, parentOf } from "./src/paths.ts";
export { pemBlocks } from "./src/pem.ts";
export { escapeControls } from "./src/printable.ts";
export * from "./src/random.ts";
export type { SelfCertConfig } from "./src/self-cert.ts";
export { tlsContext } from "./src/tls-context.ts";
export { listItems, trimEndOf } from "./src/trim.ts";
export * from "./src/turns.ts";
export { WarningInterval } from "./src/warning-interval.ts";

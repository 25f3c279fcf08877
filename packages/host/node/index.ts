/**
 * The platform interfaces over Node: this machine's time, randomness, disk, network and log
 * outputs.
 */
export {
  type LogCounts,
  LogOutput,
  type LogSurroundings,
  type LogTarget,
} from "../src/log-output.ts";
export { nodeClock } from "./clock.ts";
export { readRevocations } from "./crl.ts";
export { nodeDisk, unsyncedNodeDisk } from "./disk.ts";
export { Door, type DoorServant, type OpenDoor, openDoor } from "./door.ts";
export {
  FILE_RELOAD_PERIOD_MS,
  type FileContents,
  FileSource,
  type FileSourceDependencies,
  MAX_RELOADED_FILE_BYTES,
} from "./file-source.ts";
export { createHttp1Server, Http1Agent, requestHttp1 } from "./http1.ts";
export {
  type CertificateSubject,
  issueCertificate,
  makeAuthority,
  type Pair,
} from "./issue-certificates.ts";
export { levelKeyspaces, unsyncedLevelKeyspaces } from "./keyspace.ts";
export { isLocked } from "./lock.ts";
export { nonBlockingStream } from "./log-targets.ts";
export { formatForTerminal, type NodeLogger, nodeLogger, writtenLogger } from "./logger.ts";
export { machineLimits, threadNumber, threadProcessorMs } from "./machine.ts";
export { type DiskOperation, MemoryDisk, type MemoryDiskOptions } from "./memory/disk.ts";
export { MemoryKeyspaceOpener } from "./memory/keyspace.ts";
export { nodeNames } from "./names.ts";
export { OpenTlsSockets } from "./open-sockets.ts";
export { type HttpContext, type HttpPeer, serveHttp1, serveHttp2 } from "./plain-http.ts";
export { nodeRandom } from "./random.ts";
export { RotatingFile } from "./rotating-file.ts";
export { ensureSelfCert } from "./self-cert.ts";
export { sniff, sniffProtocol } from "./sniff.ts";
export { addressOf, hostOf } from "./socket-address.ts";
export { supervisorOf } from "./supervisor.ts";
export * from "./tls.ts";
export { tlsExpiries } from "./tls-check.ts";
export { followingTlsServer } from "./tls-server.ts";
export {
  followTlsFiles,
  MAX_TLS_FILE_BYTES,
  type TlsFileSource,
  type TlsSource,
  tlsSource,
} from "./tls-source.ts";
export { writeWholeFile } from "./whole-file.ts";

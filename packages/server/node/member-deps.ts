/** A member's transport and limits among real sockets and files. */
import { createHash, randomBytes } from "node:crypto";
import type { HttpHandler } from "@quorate/host";
import {
  levelKeyspaces,
  nodeDisk,
  nodeNames,
  unsyncedLevelKeyspaces,
  unsyncedNodeDisk,
} from "@quorate/host/node";
import type { MemberDeps, TransportRequest } from "@quorate/member";
import {
  answerLimitsFor,
  logMemoryFor,
  MIN_CLUSTER_VERSION,
  SERVER_VERSION,
  WATCH_LIMITS,
} from "@quorate/member";
import { Http2Transport } from "@quorate/transport/node";
import type { ServerConfig } from "../src/config/server-config.ts";
import { bcryptHasher, hashThreads } from "./bcrypt-hasher.ts";
import { peerConnectionMetrics, transportObserver } from "./peer-metrics.ts";
import type { ProcessDeps, Resources } from "./resources.ts";

/**
 * What the member is started with.
 * @param peerHttp answers HTTP requests on the peer port
 */
export function memberDeps(
  config: ServerConfig,
  { clock, logger }: ProcessDeps,
  resources: Resources,
  peerHttp: HttpHandler,
): Omit<MemberDeps, "onEnd"> {
  const { budgets, random } = resources;
  return {
    clock,
    random,
    logger,
    names: nodeNames,
    disk: config.unsafeNoFsync ? unsyncedNodeDisk : nodeDisk,
    keyspaces: config.unsafeNoFsync ? unsyncedLevelKeyspaces : levelKeyspaces,
    // The client library and gRPC are loaded only by a member that is to find others.
    openRegistry: async (discovery) =>
      (await import("./discovery-registry.ts")).openRegistry(discovery),
    answerLimits: answerLimitsFor(budgets),
    logMemory: logMemoryFor(budgets, config.maxRequestBytes),
    sha256: () => createHash("sha256"),
    makeTransport: (request) => peerTransport(config, logger, clock, resources, request, peerHttp),
    callPeer: resources.peerCalls.call,
    watchLimits: {
      ...WATCH_LIMITS,
      maxTotalBacklogBytes: budgets.watchBacklogTotalBytes,
      maxWatchesTotalBytes: budgets.watchesTotalBytes,
      maxWatchesClientBytes: budgets.watchesClientBytes,
      maxContestTotalBytes: budgets.contestsTotalBytes,
      maxContestClientBytes: budgets.contestsClientBytes,
    },
    secrets: {
      randomBytes,
      hasher: bcryptHasher(),
      threads: hashThreads(),
      tokens: resources.signedTokens?.provider,
    },
  };
}

function peerTransport(
  config: ServerConfig,
  logger: ProcessDeps["logger"],
  clock: ProcessDeps["clock"],
  { budgets, random, peerTls, ports }: Resources,
  request: TransportRequest,
  peerHttp: HttpHandler,
): Http2Transport {
  const transport = new Http2Transport(
    {
      selfId: request.memberId,
      clusterId: request.clusterId,
      localUrls: config.advertisePeerUrls.map((url) => url.text),
      listen: ports.peer.map((address) => ({
        ...address,
        host: address.host ?? "",
        port: address.port ?? 0,
      })),
      tls: peerTls,
      skipClientSanVerification: config.peerTls?.skipClientSanVerify,
      serverVersion: SERVER_VERSION,
      minClusterVersion: MIN_CLUSTER_VERSION,
      maxIncomingConnections: budgets.peerConnections,
      localAddress: config.localAddress,
      pingTimeoutMs: config.raftReadTimeoutMs,
    },
    {
      clock,
      random,
      logger: logger.child("transport"),
      listener: request.listener,
      http: peerHttp,
      observer: transportObserver(request.metrics, request.memberId, request.questions.isRemoved),
      ...request.questions,
    },
  );
  peerConnectionMetrics(request.metrics.registry, () => transport.slotCounters);
  return transport;
}

/**
 * Endpoints by SRV records for both commands (etcd: etcdmain/util.go, discoverEndpoints;
 * client/pkg/transport, ValidateSecureEndpoints).
 */

import { connect as connectTls } from "node:tls";
import { discoverEndpoints as clientEndpoints } from "@quorate/client/node";
import { type Logger, type Names, type SrvTarget, tlsContext } from "@quorate/host";
import { defined } from "@quorate/proto";
import { splitAddress } from "@quorate/rpc/node";

/** What is asked. */
export interface SrvFlags {
  /** --discovery-srv; empty: nothing is discovered. */
  readonly domain: string;
  readonly serviceName: string;
  /** --insecure-discovery: endpoints are taken without a look at their certificates. */
  readonly isInsecure: boolean;
  /** The CA that the endpoints' certificates are verified by; empty for the system's. */
  readonly caPem: string | undefined;
}

/** An endpoint and its record. */
export interface DiscoveredEndpoint {
  /** A URL. */
  readonly endpoint: string;
  readonly target: SrvTarget;
}

const VALIDATION_TIMEOUT_MS = 5000;
/** A cluster has a handful of members. */
const MAX_SRV_RECORDS = 64;

/**
 * The endpoints in the records that are not refused; empty without a domain. Rejects with both
 * reasons if there are no records.
 */
export async function discover(
  { domain, serviceName, isInsecure, caPem }: SrvFlags,
  names: Pick<Names, "lookupSrv">,
  logger: Logger,
): Promise<readonly DiscoveredEndpoint[]> {
  if (domain === "") return [];
  const targets: SrvTarget[] = [];
  const lookup = async (service: string, of: string): Promise<readonly SrvTarget[]> => {
    const found = (await names.lookupSrv(service, of)).slice(0, MAX_SRV_RECORDS);
    targets.push(...found);
    return found;
  };
  const question = { domain, serviceName, takesPlain: true };
  const endpoints = await clientEndpoints(question, lookup, () => {});
  const found = endpoints.map((endpoint, i) => ({
    endpoint,
    target: defined(targets[i], "the record"),
  }));
  logger.info("discovered cluster from SRV", { "srv-server": domain, endpoints });
  if (isInsecure) return found;
  logger.info("validating discovered SRV endpoints", { "srv-server": domain, endpoints });
  const reasons = await Promise.all(endpoints.map((endpoint) => validate(endpoint, domain, caPem)));
  const valid = found.filter((_, i) => reasons[i] === undefined);
  const shown = valid.map(({ endpoint }) => endpoint);
  const refused = reasons.filter((reason) => reason !== undefined);
  if (refused.length > 0) {
    logger.warn("failed to validate discovered endpoints", {
      "srv-server": domain,
      endpoints: shown,
      error: refused.join(","),
    });
  } else {
    const fields = { "srv-server": domain, endpoints: shown };
    logger.info("using validated discovered SRV endpoints", fields);
  }
  return valid;
}

/** Why an endpoint is refused; undefined if its certificate is valid for the domain. */
function validate(
  endpoint: string,
  domain: string,
  caPem: string | undefined,
): Promise<string | undefined> {
  if (!endpoint.startsWith("https://"))
    return Promise.resolve(`${JSON.stringify(endpoint)} is insecure`);
  const { host, port } = splitAddress(endpoint.slice("https://".length));
  return new Promise((resolve) => {
    const socket = connectTls({
      host,
      port,
      servername: domain,
      timeout: VALIDATION_TIMEOUT_MS,
      ...tlsContext({ trusted: caPem }),
    });
    const end = (reason: string | undefined): void => {
      socket.destroy();
      resolve(reason);
    };
    socket.once("secureConnect", () => end(undefined));
    socket.once("timeout", () => end(`${JSON.stringify(endpoint)}: i/o timeout`));
    socket.once("error", (error) => end(error.message));
  });
}

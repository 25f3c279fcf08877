/**
 * Discovers endpoints by SRV records, as etcdctl does (etcd: client/pkg/srv, GetClient):
 *
 *     _etcd-client-ssl[-NAME]._tcp.DOMAIN   https://host:port
 *     _etcd-client[-NAME]._tcp.DOMAIN       http://host:port
 */
import { joinHostPort } from "@quorate/host";

/**
 * The SRV records of _service._tcp.domain, by priority. Rejects with Node's error if there are
 * none.
 */
export type LookupSrv = (
  service: string,
  domain: string,
) => Promise<readonly { readonly host: string; readonly port: number }[]>;

export interface SrvQuestion {
  readonly domain: string;
  /** Suffix of the service from --discovery-srv-name; may be empty. */
  readonly serviceName: string;
  /** Whether endpoints without TLS are accepted. */
  readonly takesPlain: boolean;
}

/** Go's texts for error codes of the DNS resolver. */
const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  ENODATA: "no such host",
  ETIMEOUT: "i/o timeout",
  ECONNREFUSED: "connection refused",
  ESERVFAIL: "server misbehaving",
};

/**
 * The endpoints in the records, those with TLS first. Calls `warn` for each one without TLS that is
 * not accepted.
 * @throws Error with both reasons if neither kind of record exists
 */
export async function discoverEndpoints(
  question: SrvQuestion,
  lookup: LookupSrv,
  warn: (text: string) => void,
): Promise<string[]> {
  const { domain, serviceName, takesPlain } = question;
  const endpoints: string[] = [];
  const reasons: string[] = [];
  for (const [scheme, service] of [
    ["https", "etcd-client-ssl"],
    ["http", "etcd-client"],
  ] as const) {
    const name = serviceName === "" ? service : `${service}-${serviceName}`;
    try {
      for (const { host, port } of await lookup(name, domain)) {
        const endpoint = `${scheme}://${joinHostPort(host, port)}`;
        if (scheme === "http" && !takesPlain)
          warn(`ignoring discovered insecure endpoint ${JSON.stringify(endpoint)}`);
        else endpoints.push(endpoint);
      }
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      reasons.push(`lookup _${name}._tcp.${domain}: ${REASONS[code ?? ""] ?? message}`);
    }
  }
  if (reasons.length === 2) throw new Error(`dns lookup errors: ${reasons.join(" and ")}`);
  return endpoints;
}

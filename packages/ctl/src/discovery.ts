/**
 * The members' endpoints by SRV records, as etcdctl finds them (etcd: client/pkg/srv, GetClient):
 *
 *     _etcd-client-ssl[-NAME]._tcp.DOMAIN   https://host:port
 *     _etcd-client[-NAME]._tcp.DOMAIN       http://host:port
 */

/**
 * The SRV records of _service._tcp.domain, by priority. Rejects with Node's error where there are
 * none.
 */
export type LookupSrv = (
  service: string,
  domain: string,
) => Promise<readonly { readonly host: string; readonly port: number }[]>;

export interface SrvQuestion {
  readonly domain: string;
  /** What --discovery-srv-name adds to the service; may be empty. */
  readonly serviceName: string;
  /** Whether plain endpoints are taken. */
  readonly takesPlain: boolean;
}

/** Words of Go's for what a resolver says. */
const REASONS: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  ENODATA: "no such host",
  ETIMEOUT: "i/o timeout",
  ECONNREFUSED: "connection refused",
  ESERVFAIL: "server misbehaving",
};

/**
 * The endpoints that the records name, those with TLS first; none if all are plain and not taken,
 * which `warn` is told of each.
 * @throws Error with both reasons where neither kind of record is there
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
        const endpoint = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
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

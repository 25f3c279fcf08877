/** The names of the network: what the DNS tells. */

/** A place that an SRV record names. */
export interface SrvTarget {
  /** Without a dot at its end. */
  readonly host: string;
  readonly port: number;
}

export interface Names {
  /**
   * The SRV records of _service._tcp.domain, by priority. Rejects with an Error whose message is
   * the reason where there are none.
   */
  lookupSrv(service: string, domain: string): Promise<readonly SrvTarget[]>;
  /** The address of a host; an address stands for itself. Rejects as above. */
  resolveHost(host: string): Promise<string>;
}

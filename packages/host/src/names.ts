/** The DNS resolver interface. */

/** The target of an SRV record. */
export interface SrvTarget {
  /** Without the trailing dot. */
  readonly host: string;
  readonly port: number;
  /** Smaller is better; 0 if unknown. */
  readonly priority?: number;
  /** Its share among records of one priority; 0 if unknown. */
  readonly weight?: number;
}

export interface Names {
  /**
   * The SRV records of _service._tcp.domain, by priority. Rejects with an Error with the reason if
   * there are none.
   */
  lookupSrv(service: string, domain: string): Promise<readonly SrvTarget[]>;
  /** The address of a host; an address resolves to itself. Rejects as above. */
  resolveHost(host: string): Promise<string>;
}

import { hostOfAddress } from "@quorate/host";

/** The other end of a connection. */
export interface Peer {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  readonly peerSubject?: string | undefined;
  readonly peerOrganizations?: readonly string[];
  readonly peerCertificateSha256?: string;
  readonly peerCertificateError?: string;
  readonly peerProxyName?: string;
  /** The connection uses TLS. */
  readonly isSecure?: boolean;
}

/**
 * The field in which a proxy names its client's address: it adds it at the end of the value, or as
 * a field of its own after the client's, so the last one counts.
 */
export const FORWARDED_FOR = "x-forwarded-for";

/** The identity of a client for fair sharing: its certificate's common name, or its address. */
export function clientOf({ peerAddress, peerCommonName }: Peer): string {
  if (peerCommonName !== undefined && peerCommonName !== "") return `CN ${peerCommonName}`;
  return hostOfAddress(peerAddress);
}

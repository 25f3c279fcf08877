/** Who is at the other end. */
export interface Peer {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
}

/**
 * The client that a peer is, for what is shared fairly: a certificate's common name, or an address.
 */
export function clientOf({ peerAddress, peerCommonName }: Peer): string {
  if (peerCommonName !== undefined && peerCommonName !== "") return `CN ${peerCommonName}`;
  const colon = peerAddress.lastIndexOf(":");
  return colon === -1 ? peerAddress : peerAddress.slice(0, colon);
}

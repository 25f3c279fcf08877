/** The local address of a member's connections to its peers (feature gate SetMemberLocalAddr). */
import { isIpAddress, type MemberUrl } from "./url.ts";

const UNSPECIFIED = /^(?:0\.0\.0\.0|[0:]+)$/;
const LOOPBACK = /^(?:127\.|0*(?::0*)*:0*1$)/;

/**
 * The first address among the advertised peer URLs that other members can reach: not a name, a
 * loopback address or an unspecified one. Undefined if there is none. Source: etcd,
 * server/embed/config.go (InferLocalAddr).
 */
export function inferLocalAddress(advertised: readonly MemberUrl[]): string | undefined {
  return advertised.find(
    ({ host }) => isIpAddress(host) && !UNSPECIFIED.test(host) && !LOOPBACK.test(host),
  )?.host;
}

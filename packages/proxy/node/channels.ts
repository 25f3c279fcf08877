/** Channels to the members behind endpoints. */
import type { Clock } from "@quorate/host";
import { handshakeFailure } from "@quorate/host/node";
import type { ClientLimits } from "@quorate/rpc";
import { Channel } from "@quorate/rpc/client";
import { hasTlsFlags, type UpstreamTlsFlags, upstreamTls } from "./upstream-tls.ts";

/** Timeout of connecting to one member, before the next is tried. */
const DIAL_TIMEOUT_MS = 2000;

export interface ChannelSettings {
  readonly tls: UpstreamTlsFlags;
  readonly limits: Partial<ClientLimits>;
  readonly clock: Clock;
}

/** Whether an endpoint is connected to by TLS: by its scheme, else by the flags. */
export function isSecure(endpoint: string, tls: UpstreamTlsFlags): boolean {
  if (/^(?:https|unixs):/i.test(endpoint)) return true;
  return !/^(?:http|unix):/i.test(endpoint) && hasTlsFlags(tls);
}

/** The channel to an endpoint: "host:port", a URL, or "unix:PATH". */
export function channelTo(endpoint: string, { tls, limits, clock }: ChannelSettings): Channel {
  const unix = /^unixs?:(?:\/\/)?(.+)$/.exec(endpoint);
  const address =
    unix !== null
      ? `unix:${unix[1]}`
      : endpoint.replace(/^https?:\/\//i, "").replace(/[/?#].*$/s, "");
  return new Channel(
    {
      endpoint,
      address,
      tls: isSecure(endpoint, tls) ? () => upstreamTls(tls, address) : undefined,
      dialTimeoutMs: DIAL_TIMEOUT_MS,
      limits,
      handshakeFailure,
    },
    clock,
  );
}

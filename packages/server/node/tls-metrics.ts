/**
 * When certificates, authorities and revocation lists of this member end: so that an operator is
 * warned before connections are refused.
 */
import { type TlsOptions, type TlsSource, tlsExpiries } from "@quorate/host/node";
import type { MetricRegistry } from "@quorate/metrics";

/**
 * Where a port has its TLS options from, and how often those were read again where they come from
 * files.
 */
type CountedSource = TlsSource & { readonly reloads?: number; readonly failedReloads?: number };

/** What a member has of TLS; undefined for a port that talks plainly. */
export interface TlsPorts {
  readonly client: CountedSource | undefined;
  readonly peer: CountedSource | undefined;
}

/**
 * Declares the metrics. Files are looked at when the source has read them again; a scrape costs
 * nothing else.
 */
export function tlsMetrics(registry: MetricRegistry, { client, peer }: TlsPorts): void {
  const ends = registry.gauges(
    "quorate_tls_certificate_not_after_seconds",
    "When the certificate of each role ends, in seconds since 1970; of a chain or of several authorities the first.",
    ["role"],
  );
  const lists = registry.gauges(
    "quorate_tls_crl_next_update_seconds",
    "When the next edition of the revocation list of a port is due, in seconds since 1970.",
    ["role"],
  );
  const reloads = registry.counters(
    "quorate_tls_reloads_total",
    "How often changed TLS files of a port were taken.",
    ["port"],
  );
  const failures = registry.counters(
    "quorate_tls_reload_failures_total",
    "How often TLS files of a port could not be read, or were damaged or did not fit each other; those from before stay in force.",
    ["port"],
  );
  for (const [port, source] of [
    ["client", client],
    ["peer", peer],
  ] as const) {
    if (source === undefined) continue;
    const [taken, failed] = [reloads.with(port), failures.with(port)];
    registry.onScrape(() => {
      taken.value = source.reloads ?? 0;
      failed.value = source.failedReloads ?? 0;
    });
  }
  let seen: readonly (TlsOptions | undefined)[] = [];
  registry.onScrape(() => {
    const now = [client?.current, peer?.current];
    if (now.every((options, i) => options === seen[i]) && seen.length > 0) return;
    seen = now;
    ends.reset();
    lists.reset();
    const set = (family: typeof ends, role: string, ms: number | undefined): void => {
      if (ms !== undefined) family.with(role).value = ms / 1000;
    };
    for (const [options, port, own] of [
      [now[0], "client", "server"],
      [now[1], "peer", "peer"],
    ] as const) {
      if (options === undefined) continue;
      const expiries = tlsExpiries(options);
      set(ends, own, expiries.own);
      set(ends, `${port}_dialling`, expiries.dialling);
      set(ends, `${port}_ca`, expiries.authorities);
      set(lists, port, options.crlNextUpdateMs);
    }
  });
}

/**
 * When certificates, authorities and revocation lists of this member end, so that an operator is
 * warned before connections are refused; and how files about security do that are read again while
 * the member runs.
 */
import { type TlsOptions, type TlsSource, tlsExpiries } from "@quorate/host/node";
import type { MetricRegistry } from "@quorate/metrics";

/**
 * Where a port has its TLS options from, and how often those were read again where they come from
 * files.
 */
type CountedSource = TlsSource & { readonly reloads?: number; readonly failedReloads?: number };

/** What a member has of TLS; undefined for a port that talks plainly. */
interface TlsPorts {
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

/** What follows its files: TLS of a port, keys of tokens. */
interface ReloadedFiles {
  readonly failedReloads: number;
  /** True while the files cannot be used, so that those from before are in force. */
  readonly isStale: boolean;
}

/** Declares the metrics. @param sources by the label that they have; undefined: not in use */
export function reloadMetrics(
  registry: MetricRegistry,
  sources: Readonly<Record<string, ReloadedFiles | undefined>>,
): void {
  const failures = registry.counters(
    "quorate_security_reload_failures_total",
    "How often changed files about security could not be used; those from before stay in force.",
    ["source"],
  );
  const stale = registry.gauges(
    "quorate_security_reload_stale",
    "1 while files about security cannot be used and those from before are in force, else 0.",
    ["source"],
  );
  for (const [name, source] of Object.entries(sources)) {
    if (source === undefined) continue;
    const [failed, gauge] = [failures.with(name), stale.with(name)];
    registry.onScrape(() => {
      failed.value = source.failedReloads;
      gauge.value = source.isStale ? 1 : 0;
    });
  }
}

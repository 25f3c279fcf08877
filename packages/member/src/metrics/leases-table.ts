/** Metrics of leases. */
import { counter, exponentialBuckets, histogram } from "@quorate/metrics";

/** The metrics that the member itself counts. */
export const LEASES_METRICS = {
  leasesGranted: counter("etcd_debugging_lease_granted_total", "Leases granted."),
  leasesRevoked: counter(
    "etcd_debugging_lease_revoked_total",
    "Leases revoked, expired ones included.",
  ),
  leasesRenewed: counter(
    "etcd_debugging_lease_renewed_total",
    "Renewals that this member made as leader.",
  ),
  leasesExpired: counter(
    "etcd_debugging_server_lease_expired_total",
    "Expired leases that this member had revoked as leader.",
  ),
  leaseTtls: histogram(
    "etcd_debugging_lease_ttl_total",
    "Seconds that leases were granted for.",
    exponentialBuckets(1, 2, 24),
  ),
} as const;

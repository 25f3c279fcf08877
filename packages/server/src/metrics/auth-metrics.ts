/** What is counted of users, logins and tokens. */
import type { MetricRegistry } from "./registry.ts";

/** Read at a scrape. */
export interface AuthSources {
  authRevision(): number;
  isEnabled(): boolean;
  tokens(): number;
  failedLogins(): number;
  refusedLogins(): number;
  waitingHashes(): number;
}

/** Registers the metrics of users and roles. */
export function authMetrics(registry: MetricRegistry, sources: AuthSources): void {
  registry.gauge(
    "etcd_debugging_auth_revision",
    "The revision of users and roles.",
    sources.authRevision,
  );
  registry.gauge("quorate_auth_enabled", "1 while users and roles are enforced, else 0.", () =>
    sources.isEnabled() ? 1 : 0,
  );
  registry.gauge("quorate_auth_tokens", "Simple tokens that this member accepts.", sources.tokens);
  registry.readCounter(
    "quorate_auth_login_failures_total",
    "Logins at this member with a wrong password, or as a user that does not exist.",
    sources.failedLogins,
  );
  registry.readCounter(
    "quorate_auth_login_refusals_total",
    "Logins that this member refused because too many before them had failed.",
    sources.refusedLogins,
  );
  registry.gauge(
    "quorate_auth_waiting_hashes",
    "Calls that wait for the hash of a password.",
    sources.waitingHashes,
  );
}

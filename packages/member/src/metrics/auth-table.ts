/** Metrics of users, logins and tokens. */
import { type Reading, reading } from "@quorate/metrics";

/** The part of a member that they are read from. */
export interface AuthSources {
  readonly store: { readonly auth: { readonly revision: number; readonly isEnabled: boolean } };
  readonly auth: {
    readonly tokens: { readonly size: number };
    readonly logins: { readonly failures: number; readonly refusals: number };
    readonly passwords: { readonly waiting: number };
  };
}

/** What is read at a scrape. */
export const AUTH_READINGS: readonly Reading<AuthSources>[] = [
  reading(
    "gauge",
    "etcd_debugging_auth_revision",
    "The revision of users and roles.",
    ({ store }) => store.auth.revision,
  ),
  reading(
    "gauge",
    "quorate_auth_enabled",
    "1 while users and roles are enforced, else 0.",
    ({ store }) => store.auth.isEnabled,
  ),
  reading(
    "gauge",
    "quorate_auth_tokens",
    "Simple tokens that this member accepts.",
    ({ auth }) => auth.tokens.size,
  ),
  reading(
    "counter",
    "quorate_auth_login_failures_total",
    "Logins at this member with a wrong password, or as a user that does not exist.",
    ({ auth }) => auth.logins.failures,
  ),
  reading(
    "counter",
    "quorate_auth_login_refusals_total",
    "Logins that this member refused because too many before them had failed.",
    ({ auth }) => auth.logins.refusals,
  ),
  reading(
    "gauge",
    "quorate_auth_waiting_hashes",
    "Calls that wait for the hash of a password.",
    ({ auth }) => auth.passwords.waiting,
  ),
];

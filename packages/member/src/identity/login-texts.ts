/** Texts of refused logins that are not in etcd's catalogue of errors. */

/** etcd's, of a user that has no password. */
export const NO_PASSWORD_TEXT =
  "auth: authentication failed, password was given for no password user";

/** Ours, of a client that has failed too often. */
export const TOO_MANY_FAILURES = "etcdserver: too many failed logins: try again later";

/** Members that answer nobody who does not log in. */

const LOGIN_REFUSED = /user name is empty|authentication failed|invalid auth token/;

/** Why a member refused a request for its caller's login; undefined where it did not. */
export function refusedLogin({
  failure,
}: {
  readonly failure: string | undefined;
}): string | undefined {
  return failure !== undefined && LOGIN_REFUSED.test(failure) ? failure : undefined;
}

/** What to do about such a refusal. */
export function loginStep(failure: string): string {
  return failure.includes("user name is empty")
    ? "the cluster has users: pass --user NAME, and enter the password when prompted (or set ETCDCTL_USER and ETCDCTL_PASSWORD)"
    : "check the name and the password of --user; for a lost password of root see docs/operate/operations.md";
}

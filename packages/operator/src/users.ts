/** QuorateUser: a user of a cluster with a role of its own, and its password from a secret. */
import type { Clock } from "@quorate/host";
import { report } from "./backups.ts";
import type { QuorateCluster, QuorateUser } from "./base/kinds.ts";
import { GROUP, type Key, type Kube } from "./base/kube.ts";
import type { Members } from "./base/members.ts";
import { secretText } from "./cluster/certificates.ts";
import { targetOf } from "./cluster/observe.ts";

/** So often what was changed by others is set right. */
const LATER_MS = 60_000;
const SOON_MS = 2000;
const FINALIZER = `${GROUP}/user`;

export interface UserDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly members: Members;
}

export class UserReconciler {
  readonly #deps: UserDeps;

  constructor(deps: UserDeps) {
    this.#deps = deps;
  }

  /** As the reconciler of clusters. */
  async reconcile({ namespace, name }: Key): Promise<number | undefined> {
    const { kube, members } = this.#deps;
    const user = await kube.get<QuorateUser>("QuorateUser", namespace, name);
    if (user === undefined) return undefined;
    const { cluster: clusterName, username = name, passwordSecret, permissions } = user.spec!;
    const cluster = await kube.get<QuorateCluster>("QuorateCluster", namespace, clusterName);
    const target = cluster === undefined ? undefined : await targetOf(kube, cluster);
    if (user.metadata.deletionTimestamp !== undefined) {
      // With the cluster the user goes as well.
      if (target !== undefined) await members.dropUser(target, username);
      else if (cluster !== undefined) return SOON_MS;
      await kube.patch("QuorateUser", namespace, name, { metadata: { finalizers: null } }, "");
      return undefined;
    }
    if (target === undefined || !cluster?.status?.clusterID || cluster.spec!.size === 0)
      return this.#wait(user, "NoCluster", `${clusterName} is not there, or does not run`);
    const secret = await kube.get("Secret", namespace, passwordSecret.name);
    const password = secretText(secret, passwordSecret.key);
    if (secret === undefined || password === "") {
      const why = `the secret ${passwordSecret.name} has no ${passwordSecret.key}`;
      return this.#wait(user, "NoPassword", why);
    }
    if (!(user.metadata.finalizers ?? []).includes(FINALIZER)) {
      const patch = { metadata: { finalizers: [FINALIZER] } };
      await kube.patch("QuorateUser", namespace, name, patch, "");
    }
    const version = `${clusterName}/${cluster.status.clusterID}/${secret.metadata.resourceVersion}`;
    const isSet = user.status?.passwordVersion === version;
    await members.keepUser(
      target,
      username,
      isSet ? undefined : password,
      permissions.map(({ access, key, prefix = false }) => ({ access, key, isPrefix: prefix })),
    );
    const message = `the user ${username} and its role are there`;
    await report(this.#deps, user, { passwordVersion: version }, [
      { type: "Ready", status: "True", reason: "Set", message },
    ]);
    return LATER_MS;
  }

  async #wait(user: QuorateUser, reason: string, message: string): Promise<number> {
    await report(this.#deps, user, {}, [{ type: "Ready", status: "False", reason, message }]);
    return SOON_MS;
  }
}

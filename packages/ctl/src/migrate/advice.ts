/**
 * What the one has to do who starts and stops the members: the command changes the cluster, and may
 * not touch units, manifests and the settings of clients.
 */

/** Below the variables of a member that is to be started. @param program quorate or etcd */
export function startAdvice(name: string, program: string): string {
  return (
    `Besides, give ${name} an empty --data-dir, --listen-peer-urls, --listen-client-urls,\n` +
    "--advertise-client-urls, and certificates as the other members have them.\n" +
    `  By hand: run ${program} with them.\n` +
    "  systemd: write them to the EnvironmentFile of its unit, then: systemctl enable --now UNIT\n" +
    "  static pod (kubeadm): write them as flags to a manifest of its own in\n" +
    "    /etc/kubernetes/manifests, with other ports and another hostPath than the old member's.\n"
  );
}

/** After a member was removed; it ends by itself. */
export function removedAdvice(name: string): string {
  return (
    `${name} ends by itself now. Keep it from starting again, which would end at once:\n` +
    "  systemd: systemctl disable UNIT\n" +
    "  static pod (kubeadm): move its manifest out of /etc/kubernetes/manifests, else kubelet starts\n" +
    "    it over and over.\n" +
    "  Its data directory is of no use to the cluster any more.\n"
  );
}

/** When all members are replaced. @param urls client URLs of the members now */
export function endAdvice(urls: readonly string[]): string {
  const list = urls.join(",");
  return (
    "Clients that have a list of members need the new one:\n" +
    `  --endpoints=${list}\n` +
    `  kube-apiserver (its manifest in /etc/kubernetes/manifests): --etcd-servers=${list}\n`
  );
}

/**
 * kube-apiserver's flags that steer nothing here. They are accepted, so that its command lines
 * start, and a warning has the reason. Those that restrict what is served are refused instead: what
 * cannot be enforced is not served openly.
 */
import type { Flag, Flags } from "@quorate/cli";

/** Names by reason; "?" behind a name: it is a switch, and takes no value after a space. */
const REASONS: Readonly<Record<string, string>> = {
  "pods do not run here": `allow-privileged? default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds kubelet-certificate-authority kubelet-client-certificate
    kubelet-client-key kubelet-port kubelet-preferred-address-types kubelet-read-only-port
    kubelet-timeout max-connection-bytes-per-sec`,
  "services have no proxy here": `kubernetes-service-node-port endpoint-reconciler-type egress-selector-config-file`,
  "each server of a cluster serves all itself":
    "peer-advertise-ip peer-advertise-port peer-ca-file",
  "redirects of other API servers are refused": "aggregator-reject-forwarding-redirect?",
  "what is not in the flags of this program is on": `emulated-version
    emulation-forward-compatible? min-compatibility-version runtime-config
    runtime-config-emulation-forward-compatible?`,
  "the program has its own bounds": `delete-collection-workers goaway-chance
    http2-max-streams-per-connection lease-reuse-duration-seconds watch-cache-sizes
    enable-priority-and-fairness?`,
  "there are no profiles to serve": `contention-profiling? debug-socket-path profiling?`,
  "its controllers are those of --controllers": `coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period
    enable-garbage-collector?`,
  "the cluster is watched by its client": `etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout storage-backend
    storage-initialization-timeout livez-grace-period`,
  "it stops by --shutdown-delay-duration alone": `shutdown-send-retry-after?
    shutdown-watch-termination-grace-period`,
  "the port is Node's": `disable-http2-serving? permit-address-sharing? permit-port-sharing?
    tls-curve-preferences tls-sni-cert-key strict-transport-security-directives
    cors-allowed-origins`,
  "the audit log is a file, written behind requests": `audit-log-batch-buffer-size
    audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
    audit-log-batch-throttle-enable? audit-log-batch-throttle-qps audit-log-truncate-enabled?
    audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version
    audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
    audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable?
    audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff
    audit-webhook-mode audit-webhook-truncate-enabled? audit-webhook-truncate-max-batch-size
    audit-webhook-truncate-max-event-size audit-webhook-version`,
  "there are no tokens that begin a cluster": "enable-bootstrap-token-auth?",
  "tokens of service accounts are looked up, and as long as asked for": `
    service-account-extend-token-expiration? service-account-jwks-uri service-account-lookup?
    service-account-signing-endpoint`,
  "see --enable-admission-plugins": "admission-control",
  "metrics are as they are": `allow-metric-labels allow-metric-labels-manifest disabled-metrics
    show-hidden-metrics-for-version`,
  "see --log-level": `log-flush-frequency log-json-info-buffer-size log-json-split-stream?
    log-text-info-buffer-size log-text-split-stream? logging-format v vmodule
    enable-logs-handler?`,
  "requests are not traced": "tracing-config-file",
};

const REFUSED = `authentication-config authorization-config authorization-policy-file
  admission-control-config-file tls-cipher-suites
  tls-min-version`;

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** By name: accepted without effect. */
export const UNUSED_FLAGS: Flags = Object.fromEntries(
  Object.entries(REASONS).flatMap(([why, names]) =>
    words(names).map((word): [string, Flag] => {
      const isSwitch = word.endsWith("?");
      const name = isSwitch ? word.slice(0, -1) : word;
      return [
        name,
        { kind: isSwitch ? "bool" : "string", defaultText: "", doc: `no effect: ${why}` },
      ];
    }),
  ),
);

/** By name: known, and refused where they are set. */
export const REFUSED_FLAGS: Flags = Object.fromEntries(
  words(REFUSED).map((name): [string, Flag] => [
    name,
    { kind: "string", defaultText: "", doc: "refused: what it restricts would stay open" },
  ]),
);

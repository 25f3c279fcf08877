/** Checks that settings and features agree on all members. */
import { humanBytes } from "@quorate/cli";
import type { MetricsText } from "../observe/metrics-text.ts";
import { type Finding, warning } from "./finding.ts";
import type { ClusterView, MemberView } from "./view.ts";

interface Setting {
  readonly check: string;
  readonly name: string;
  /** The flag that changes it. */
  readonly how: string;
  /** Why members should agree. */
  readonly why: string;
  readonly read: (metrics: MetricsText) => number | undefined;
  readonly show: (value: number) => string;
}

const seconds = (value: number): string =>
  value < 1 ? `${Math.round(value * 1000)} ms` : `${value} s`;
const metric = (name: string) => (metrics: MetricsText) => metrics.value(name);

const SETTINGS: readonly Setting[] = [
  {
    check: "quota",
    name: "quota",
    how: "--quota-backend-bytes",
    why: "the smallest one stops all puts",
    read: metric("etcd_server_quota_backend_bytes"),
    show: (value) => (value > 0 ? humanBytes(value) : "none"),
  },
  {
    check: "timing",
    name: "election timeout",
    how: "--election-timeout",
    why: "a member with a shorter timeout starts needless elections",
    read: metric("quorate_server_election_timeout_seconds"),
    show: seconds,
  },
  {
    check: "timing",
    name: "heartbeat interval",
    how: "--heartbeat-interval",
    why: "any member may lead, and all expect its heartbeats",
    read: metric("quorate_server_heartbeat_interval_seconds"),
    show: seconds,
  },
  {
    check: "files",
    name: "limit of open files",
    how: "LimitNOFILE in its systemd unit (systemctl edit quorate)",
    why: "clients that fail over to this member need as many connections",
    read: metric("process_max_fds"),
    show: (value) => String(value),
  },
  {
    check: "quota",
    name: "--quota-auto-disarm",
    how: "--quota-auto-disarm",
    why: "whether the alarm NOSPACE is disarmed automatically depends on the leader",
    read: metric("quorate_server_quota_auto_disarm"),
    show: (value) => (value === 0 ? "off" : "on"),
  },
  {
    check: "healing",
    name: "--self-heal",
    how: "--self-heal",
    why: "a member without it must be replaced manually",
    read: metric("quorate_server_self_heal"),
    show: (value) => (value === 0 ? "off" : "on"),
  },
];

/** Members whose settings differ from the majority's. */
export function checkSettings(view: ClusterView): Finding[] {
  const gates = new Set(
    view.members.flatMap(({ metrics }) =>
      (metrics?.series("etcd_server_feature_enabled") ?? []).map(gateOf),
    ),
  );
  const all = [...SETTINGS, ...[...gates].filter((name) => name !== undefined).map(gateSetting)];
  return all.flatMap((setting) => compare(view, setting));
}

function gateOf({ labels }: { readonly labels: string }): string | undefined {
  return /(?:^|,)name="([^"]*)"/.exec(labels)?.[1];
}

function gateSetting(name: string): Setting {
  return {
    check: "feature",
    name: `feature gate ${name}`,
    how: "--feature-gates",
    why: "a feature works only if all members have it",
    read: (metrics) => metrics.value("etcd_server_feature_enabled", `name="${name}"`),
    show: (value) => (value === 0 ? "off" : "on"),
  };
}

function compare({ members }: ClusterView, setting: Setting): Finding[] {
  const known = members.flatMap((one): { one: MemberView; text: string }[] => {
    const value = one.metrics === undefined ? undefined : setting.read(one.metrics);
    return value === undefined ? [] : [{ one, text: setting.show(value) }];
  });
  const counts = new Map<string, number>();
  for (const { text } of known) counts.set(text, (counts.get(text) ?? 0) + 1);
  if (counts.size <= 1) return [];
  const most = Math.max(...counts.values());
  const usual = [...counts].filter(([, count]) => count === most).map(([text]) => text);
  const isEven = usual.length > 1;
  const odd = isEven ? known : known.filter(({ text }) => text !== usual[0]);
  const texts = [...new Set(odd.map(({ text }) => text))];
  return texts.map((text) => {
    const labels = odd.filter((other) => other.text === text).map(({ one }) => one.label);
    const others = isEven ? "others have other values" : `most have ${usual[0]}`;
    return warning(setting.check, labels.join(", "), {
      seen: `${setting.name}: ${text}, ${others}`,
      right: `the same on all members: ${setting.why}`,
      next:
        labels.length === 1
          ? `change ${setting.how} on its machine, and restart it`
          : `change ${setting.how} on their machines, and restart them, one at a time`,
    });
  });
}

/** By the label of the metric: the files, and the options that name them. */
const SOURCES: readonly (readonly [source: string, files: string, flags: string])[] = [
  ["client_tls", "the TLS files of its client port", "--cert-file, --trusted-ca-file and others"],
  [
    "peer_tls",
    "the TLS files of its peer port",
    "--peer-cert-file, --peer-trusted-ca-file and others",
  ],
  ["tokens", "the keys of tokens", "--auth-token"],
];

/** A restart would fail on files that a running member gets by without. */
export function checkReloads(view: ClusterView): Finding[] {
  return view.members.flatMap(({ label, metrics }) =>
    SOURCES.flatMap(([source, files, flags]): Finding[] => {
      const isStale = metrics?.value("quorate_security_reload_stale", `source="${source}"`) === 1;
      if (!isStale) return [];
      return [
        warning("security files", label, {
          seen: `${files} cannot be used as they are now; those from before are in force`,
          right: "files that the member can read: with these it would not start again",
          next: `its log says which file is wrong and why; put it right where ${flags} points: the member reads it by itself`,
        }),
      ];
    }),
  );
}

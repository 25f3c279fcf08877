/** Files about security that a member reads again while it runs, and cannot use. */
import type { Finding } from "./finding.ts";
import type { ClusterView } from "./view.ts";

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
        {
          severity: "warning",
          check: "security files",
          member: label,
          seen: `${files} cannot be used as they are now; those from before are in force`,
          right: "files that the member can read: with these it would not start again",
          next: `its log says which file is wrong and why; put it right where ${flags} points: the member reads it by itself`,
          run: [],
        },
      ];
    }),
  );
}

/** Checks membership, leadership, quorum, replication lag and versions. */

import { defined, idToHex } from "@quorate/proto";
import { loginStep, refusedLogin } from "../observe/login.ts";
import { hasResponded } from "../observe/responded.ts";
import { printable, shellWord } from "../observe/text.ts";
import { type Finding, finding, problem, warning } from "./finding.ts";
import { type ClusterView, ctl, membersOf } from "./view.ts";

/** Largest accepted lag in entries; etcd's limit too. */
const MAX_LAG_ENTRIES = 5000;
/** Leader changes per hour that count as a problem. */
const MAX_LEADER_CHANGES_PER_HOUR = 3;
const HOUR_MS = 3_600_000;

/** Endpoints of --endpoints that are of no member of the cluster. */
export function checkEndpoints({ members }: ClusterView): Finding[] {
  const known = membersOf(members);
  const foreign = members.filter(
    (one) =>
      !known.includes(one) &&
      one.isProxy !== true &&
      one.status === undefined &&
      refusedLogin(one) === undefined,
  );
  const proxies = members.filter(({ isProxy }) => isProxy === true);
  const common = {
    severity: "warning",
    check: "endpoints",
    member: "client",
    right: "every endpoint is a client URL of a member",
    run: [],
  } as const;
  return [
    ...proxies.map(({ endpoint }) => ({
      ...common,
      seen: `${endpoint} is a grpc-proxy, which answers for one of the members and lists none of them: they were not examined through it`,
      next: "pass the client URLs of members in --endpoints; the proxy has them in its own --endpoints",
    })),
    ...foreign.map(({ endpoint, failure }) => ({
      ...common,
      seen: `${endpoint} is no client URL of a member, and does not respond: ${failure}`,
      next: "correct --endpoints, or leave this endpoint out",
    })),
  ];
}

/**
 * The members that refuse to answer whoever does not log in, as one finding. Of proxies too: what
 * they pass on is a member's refusal.
 */
export function checkLogin({ members }: ClusterView): Finding[] {
  const refusing = members.filter((one) => refusedLogin(one) !== undefined);
  const [first] = refusing;
  if (first === undefined) return [];
  return [
    problem("login", "client", {
      seen: `${refusing.map(({ label }) => label).join(", ")} responded and refused the request: ${first.failure}`,
      right: "a user of the cluster asks; root may see everything",
      next: loginStep(defined(first.failure, "the failure")),
    }),
  ];
}

/** Members that do not respond, or were never started. */
export function checkReachable(view: ClusterView): Finding[] {
  return membersOf(view.members).flatMap((one): Finding[] => {
    const { label, endpoint, member, failure, certificate } = one;
    if (refusedLogin(one) !== undefined) return [];
    if (member !== undefined && member.name === "") {
      return [
        finding(member.isLearner ? "warning" : "error", "started", label, {
          seen: `added as a ${member.isLearner ? "learner" : "voter"}, and never started`,
          right:
            "every member runs: a voter that does not run counts for the quorum without contributing to it",
          next: `start it with the peer URL ${printable(member.peerURLs.join(","))}; or, if it is not needed, remove it:`,
          run: [ctl(view, `member remove ${idToHex(member.ID)}`)],
        }),
      ];
    }
    // A problem with the certificate is reported by another check.
    const isRefused =
      certificate !== undefined &&
      (certificate.chainProblem ?? certificate.nameProblem) !== undefined;
    if (failure === undefined || isRefused) return [];
    if (
      certificate !== undefined &&
      /connection was closed|socket hang up|certificate/i.test(failure)
    ) {
      const own = view.files.find(({ flag }) => flag === "--cert");
      const refused =
        own === undefined ? "clients without a certificate" : `the certificate in ${own.path}`;
      return [
        problem("certificate", "client", {
          seen: `${label} presents its certificate at ${endpoint} and then closes the connection: it refuses ${refused}`,
          right: "a certificate from the CA that members trust for clients (--trusted-ca-file)",
          next:
            own === undefined
              ? "pass --cert and --key"
              : "pass --cert and --key from that CA; the issuer of this one:",
          run:
            own === undefined
              ? []
              : [`openssl x509 -noout -issuer -subject -dates -in ${shellWord(own.path)}`],
        }),
      ];
    }
    return [
      problem("reachable", label, {
        seen: `does not respond at ${endpoint === "" ? "any client URL" : endpoint}: ${failure}`,
        right: "every member responds",
        next: "on its machine: systemctl status quorate; journalctl -u quorate -n 50; when it is back:",
        run: [ctl(view, "endpoint health", endpoint)],
      }),
    ];
  });
}

/** Endpoints of different clusters. */
export function checkOneCluster(view: ClusterView): Finding[] {
  const ids = new Map(
    view.members.flatMap(({ label, status }) =>
      status?.header === undefined ? [] : [[label, status.header.clusterId]],
    ),
  );
  if (new Set(ids.values()).size <= 1) return [];
  const seen = [...ids].map(([label, id]) => `${label} ${idToHex(id)}`).join(", ");
  return [
    problem("cluster", "cluster", {
      seen: `the endpoints belong to different clusters: ${seen}`,
      right: "all endpoints are members of one cluster",
      next: "pass the endpoints of one cluster in --endpoints; the members that one of them knows:",
      run: [ctl(view, "member list -w table")],
    }),
  ];
}

/** No leader, as some member sees it. */
export function checkLeader(view: ClusterView): Finding[] {
  // A learner never campaigns, and keeps its old leader after that is gone.
  const answering = view.members.filter(hasResponded).filter(({ status }) => !status.isLearner);
  const without = answering.filter(({ status }) => status.leader === 0n);
  if (without.length === 0) return [];
  const isAll = without.length === answering.length;
  return [
    problem("leader", isAll ? "cluster" : without.map(({ label }) => label).join(", "), {
      seen: isAll
        ? "no member has a leader: writes are impossible"
        : "has no leader, although others have one",
      right: "one leader, known to every member",
      next: isAll
        ? "start members until a majority of the voters runs; if that is impossible: --force-new-cluster, docs/operate/operations.md"
        : "check that it reaches the others at their peer URLs:",
      run: isAll ? [] : [ctl(view, "member list -w table")],
    }),
  ];
}

/** An even number of voters, and forgotten learners. */
export function checkMembership(view: ClusterView): Finding[] {
  const members = view.members.flatMap(({ member }) => (member === undefined ? [] : [member]));
  const voters = members.filter((member) => !member.isLearner);
  const findings: Finding[] = [];
  if (voters.length > 0 && voters.length % 2 === 0) {
    findings.push(
      warning("voters", "cluster", {
        seen: `${voters.length} voters: they tolerate no more failures than ${voters.length - 1}`,
        right: "an odd number of voters, 3 or 5",
        next: "add one (member add NAME --learner --peer-urls=URL), or remove one (member remove ID); the members:",
        run: [ctl(view, "member list -w table")],
      }),
    );
  }
  const leader = view.members.find(
    ({ status }) => status !== undefined && status.leader === status.header?.memberId,
  );
  for (const { label, member, status } of view.members) {
    if (member?.isLearner !== true || member.name === "") continue;
    const behind =
      leader?.status !== undefined && status !== undefined
        ? leader.status.raftIndex - status.raftAppliedIndex
        : undefined;
    findings.push(
      warning("learner", label, {
        seen: `is a learner${behind === undefined ? "" : behind <= MAX_LAG_ENTRIES ? " that has caught up" : `, ${behind} entries behind`}`,
        right:
          "a learner is promoted once it has caught up, or removed: it does not count for the quorum",
        next:
          behind !== undefined && behind > MAX_LAG_ENTRIES
            ? "wait until it has caught up, then:"
            : "promote it:",
        run: [ctl(view, `member promote ${idToHex(member.ID)}`)],
      }),
    );
  }
  return findings;
}

/** Followers far behind the leader, or whose applied index is far behind their commit index. */
export function checkLag(view: ClusterView): Finding[] {
  const newest = Math.max(0, ...view.members.map(({ status }) => status?.raftIndex ?? 0));
  return view.members.flatMap(({ label, endpoint, status, member }): Finding[] => {
    if (status === undefined || member?.isLearner === true) return [];
    const lag = newest - status.raftAppliedIndex;
    if (lag <= MAX_LAG_ENTRIES) return [];
    return [
      warning("lag", label, {
        seen: `${lag} entries behind (it has applied ${status.raftAppliedIndex} of ${newest})`,
        right: `at most ${MAX_LAG_ENTRIES} entries behind`,
        next: "check whether it catches up; if not, check its disk and network:",
        run: [ctl(view, "top --once", endpoint)],
      }),
    ];
  });
}

/** Members of different versions. */
export function checkVersions(view: ClusterView): Finding[] {
  const byVersion = new Map<string, string[]>();
  for (const { label, status } of view.members) {
    if (status !== undefined)
      byVersion.set(status.version, [...(byVersion.get(status.version) ?? []), label]);
  }
  if (byVersion.size <= 1) return [];
  const [usual] = [...byVersion].sort(([, a], [, b]) => b.length - a.length).map(([one]) => one);
  return [...byVersion]
    .filter(([version]) => version !== usual)
    .map(([version, labels]) =>
      warning("version", labels.join(", "), {
        seen: `version ${version}; others have ${usual}`,
        right: "all members have the same version, except during an upgrade",
        next: "complete the upgrade, one member at a time; the versions:",
        run: [ctl(view, "endpoint status --cluster -w table")],
      }),
    );
}

/** Frequent leader changes. */
export function checkElections(view: ClusterView): Finding[] {
  let worst: { label: string; changes: number; hours: number } | undefined;
  for (const { label, metrics } of view.members) {
    const changes = metrics?.value("etcd_server_leader_changes_seen_total");
    const startSeconds = metrics?.value("process_start_time_seconds");
    if (changes === undefined || startSeconds === undefined) continue;
    const hours = Math.max(1, (view.nowMs - startSeconds * 1000) / HOUR_MS);
    if (changes / hours > MAX_LEADER_CHANGES_PER_HOUR && changes > (worst?.changes ?? 0))
      worst = { label, changes, hours };
  }
  if (worst === undefined) return [];
  const time = worst.hours === 1 ? "an hour or less" : `${worst.hours.toFixed(0)} hours`;
  return [
    warning("elections", "cluster", {
      seen: `${worst.changes} leader changes in ${time}, counted by ${worst.label}`,
      right:
        "a leader stays for days; slow disks, busy processors and lossy networks cause elections",
      next: "check the disks and delays of all members:",
      run: [ctl(view, "top --once")],
    }),
  ];
}

/** Members without connections to others that run. */
export function checkPeers(view: ClusterView): Finding[] {
  const running = view.members.filter(
    ({ member, status }) => member !== undefined && status !== undefined,
  );
  return running.flatMap(({ label, metrics }): Finding[] => {
    const active = metrics?.value("etcd_network_active_peers");
    if (active === undefined || active >= running.length - 1) return [];
    return [
      problem("peers", label, {
        seen: `has connections to ${active} of the ${running.length - 1} other members that run`,
        right: "every member is connected to every other",
        next: "check that it reaches their peer URLs and that their certificates are valid; its log has the reasons:",
        run: [ctl(view, "member list -w table")],
      }),
    ];
  });
}

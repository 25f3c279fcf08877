/** Who is there, who leads, who votes, who is behind, who differs. */
import { idToHex } from "@quorate/proto";
import { printable, shellWord } from "../observe/text.ts";
import type { Finding } from "./finding.ts";
import { type ClusterView, ctl } from "./view.ts";

/** Entries that a member may be behind: what etcd, too, takes for too far. */
const MAX_LAG_ENTRIES = 5000;
/** Leader changes in an hour, from which on it is no accident. */
const MAX_LEADER_CHANGES_PER_HOUR = 3;
const HOUR_MS = 3_600_000;

/** Members that do not answer, or have never been started. */
export function checkReachable(view: ClusterView): Finding[] {
  return view.members.flatMap(({ label, endpoint, member, failure, certificate }): Finding[] => {
    if (member !== undefined && member.name === "") {
      return [
        {
          severity: member.isLearner ? "warning" : "error",
          check: "started",
          member: label,
          seen: `added as a ${member.isLearner ? "learner" : "voter"}, and never started`,
          right:
            "every member runs: one that votes and does not run counts for the quorum and helps nobody",
          next: `start it with the peer URL ${printable(member.peerURLs.join(","))}; or, if it is not to come, take it out again:`,
          run: [ctl(view, `member remove ${idToHex(member.ID)}`)],
        },
      ];
    }
    // Where the certificate is to blame, that is found elsewhere.
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
        {
          severity: "error",
          check: "certificate",
          member: "client",
          seen: `${label} shows its certificate at ${endpoint}, and then closes the connection: it does not take ${refused}`,
          right:
            "a certificate of the authority that members trust for clients (--trusted-ca-file)",
          next:
            own === undefined
              ? "give --cert and --key"
              : "give --cert and --key of that authority; who issued this one:",
          run:
            own === undefined
              ? []
              : [`openssl x509 -noout -issuer -subject -dates -in ${shellWord(own.path)}`],
        },
      ];
    }
    return [
      {
        severity: "error",
        check: "reachable",
        member: label,
        seen: `does not answer at ${endpoint === "" ? "any client URL" : endpoint}: ${failure}`,
        right: "every member answers",
        next: "on its machine: systemctl status quorate; journalctl -u quorate -n 50; when it is back:",
        run: [ctl(view, "endpoint health", endpoint)],
      },
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
    {
      severity: "error",
      check: "cluster",
      member: "cluster",
      seen: `the endpoints belong to different clusters: ${seen}`,
      right: "all endpoints are members of one cluster",
      next: "name the endpoints of one cluster in --endpoints; these are the members that one of them knows:",
      run: [ctl(view, "member list -w table")],
    },
  ];
}

/** Nobody leads, for some member at least. */
export function checkLeader(view: ClusterView): Finding[] {
  // A learner never stands for election, and goes on believing in a leader that is gone.
  const answering = view.members.filter(({ status }) => status !== undefined && !status.isLearner);
  const without = answering.filter(({ status }) => status!.leader === 0n);
  if (without.length === 0) return [];
  const isAll = without.length === answering.length;
  return [
    {
      severity: "error",
      check: "leader",
      member: isAll ? "cluster" : without.map(({ label }) => label).join(", "),
      seen: isAll
        ? "no member knows a leader: nothing can be written"
        : "knows no leader, though others do",
      right: "one leader, which every member knows",
      next: isAll
        ? "start members until a majority of the voters runs; if it is lost for good: --force-new-cluster, docs/operations.md"
        : "see that it reaches the others at their peer URLs:",
      run: isAll ? [] : [ctl(view, "member list -w table")],
    },
  ];
}

/** An even number of voters, and learners that were left behind. */
export function checkMembership(view: ClusterView): Finding[] {
  const members = view.members.flatMap(({ member }) => (member === undefined ? [] : [member]));
  const voters = members.filter((member) => !member.isLearner);
  const findings: Finding[] = [];
  if (voters.length > 0 && voters.length % 2 === 0) {
    findings.push({
      severity: "warning",
      check: "voters",
      member: "cluster",
      seen: `${voters.length} voters: no more of them may fail than with ${voters.length - 1}`,
      right: "an odd number of voters, 3 or 5",
      next: "add one (member add NAME --learner --peer-urls=URL), or take one out (member remove ID); these are the members:",
      run: [ctl(view, "member list -w table")],
    });
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
    findings.push({
      severity: "warning",
      check: "learner",
      member: label,
      seen: `is a learner${behind === undefined ? "" : behind <= MAX_LAG_ENTRIES ? " that has caught up" : `, ${behind} entries behind`}`,
      right:
        "a learner becomes a voter when it has caught up, or goes again: it does not count for the quorum",
      next:
        behind !== undefined && behind > MAX_LAG_ENTRIES
          ? "wait until it has caught up, then:"
          : "make it a voter:",
      run: [ctl(view, `member promote ${idToHex(member.ID)}`)],
    });
  }
  return findings;
}

/** Followers that are far behind the leader, or apply far behind what they know to be committed. */
export function checkLag(view: ClusterView): Finding[] {
  const newest = Math.max(0, ...view.members.map(({ status }) => status?.raftIndex ?? 0));
  return view.members.flatMap(({ label, endpoint, status, member }): Finding[] => {
    const lag =
      status === undefined || member?.isLearner === true ? 0 : newest - status.raftAppliedIndex;
    if (lag <= MAX_LAG_ENTRIES) return [];
    return [
      {
        severity: "warning",
        check: "lag",
        member: label,
        seen: `${lag} entries behind (it has applied ${status!.raftAppliedIndex} of ${newest})`,
        right: `at most ${MAX_LAG_ENTRIES} entries behind`,
        next: "see whether it catches up, and look at its disk and network if not:",
        run: [ctl(view, "top --once", endpoint)],
      },
    ];
  });
}

/** Members that speak different versions. */
export function checkVersions(view: ClusterView): Finding[] {
  const byVersion = new Map<string, string[]>();
  for (const { label, status } of view.members) {
    if (status !== undefined)
      byVersion.set(status.version, [...(byVersion.get(status.version) ?? []), label]);
  }
  if (byVersion.size <= 1) return [];
  const [usual] = [...byVersion].sort(([, a], [, b]) => b.length - a.length)[0];
  return [...byVersion]
    .filter(([version]) => version !== usual)
    .map(([version, labels]) => ({
      severity: "warning",
      check: "version",
      member: labels.join(", "),
      seen: `version ${version}, where others have ${usual}`,
      right: "all members have one version, but for the time of an upgrade",
      next: "end the upgrade, one member after the other; who has which version:",
      run: [ctl(view, "endpoint status --cluster -w table")],
    }));
}

/** Leaders that change all the time. */
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
    {
      severity: "warning",
      check: "elections",
      member: "cluster",
      seen: `${worst.changes} changes of the leader in ${time}, as ${worst.label} has counted`,
      right: "a leader stays for days; slow disks, busy processors and lossy networks unseat it",
      next: "look at the disks and delays of all members:",
      run: [ctl(view, "top --once")],
    },
  ];
}

/** Members that have no connection to others which run. */
export function checkPeers(view: ClusterView): Finding[] {
  const running = view.members.filter(
    ({ member, status }) => member !== undefined && status !== undefined,
  );
  return running.flatMap(({ label, metrics }): Finding[] => {
    const active = metrics?.value("etcd_network_active_peers");
    if (active === undefined || active >= running.length - 1) return [];
    return [
      {
        severity: "error",
        check: "peers",
        member: label,
        seen: `has connections to ${active} of the ${running.length - 1} other members that run`,
        right: "every member is connected to every other",
        next: "see that it reaches their peer URLs, and that their certificates are good; its log has the reasons:",
        run: [ctl(view, "member list -w table")],
      },
    ];
  });
}

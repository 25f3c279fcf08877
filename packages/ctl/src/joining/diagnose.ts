/**
 * What speaks against a new member in a running cluster of etcd, of what has bitten others: members
 * that one list has and another has not, a learner that is there already, versions, alarms,
 * features, certificates, space, clocks. Everything is examined before the cluster is changed.
 */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { humanBytes } from "@quorate/cli";
import { pemBlocks } from "@quorate/host";
import { idToHex } from "@quorate/proto";
import type { Member } from "@quorate/store";
import { apiVersion, release } from "../connect/versions.ts";
import { checkAlarms } from "../doctor/check-alarms.ts";
import {
  checkEndpoints,
  checkLeader,
  checkLogin,
  checkOneCluster,
  checkReachable,
} from "../doctor/check-cluster.ts";
import { checkClocks } from "../doctor/check-resources.ts";
import { type Finding, problem, warning } from "../doctor/finding.ts";
import { type ClusterView, ctl, isOurs, type MemberView, membersOf } from "../doctor/view.ts";
import { targetOf } from "../observe/listed-member.ts";

/** The oldest release of etcd whose log and peer protocol are known. */
const OLDEST = "3.5";
/** The release since which etcd 3.5 repairs the members in its database at a start. */
const REPAIRED = "3.5.26";
/** A received database stands beside its copy, and that beside the store before it. */
const COPIES = 3;
/** For the log, and for what comes while the database does. */
const BESIDE_BYTES: number = 512 * 1024 * 1024;
/** Features that change what the log holds, or how it is applied. */
const REPLICATED = new Set(["LeaseCheckpoint", "LeaseCheckpointPersist"]);

/** The member that is to join. */
export interface Joiner {
  /** The peer URLs that it advertises. */
  readonly peerUrls: readonly string[];
  /** The certificate that it shows there, in PEM, and its file; undefined where it is elsewhere. */
  readonly certificate: { readonly path: string; readonly pem: string } | undefined;
  /** Where its data will be; undefined where that is on another machine. */
  readonly space: { readonly path: string; readonly freeBytes: number } | undefined;
}

/** What a member says on its peer port of the members of its cluster. */
export interface PeerList {
  readonly label: string;
  readonly members: readonly Member[];
}

/** All that is judged. */
export interface JoinView {
  readonly cluster: ClusterView;
  readonly peerLists: readonly PeerList[];
  /** One, or as many as are to join one after the other. */
  readonly joiners: readonly Joiner[];
}

/**
 * The findings: errors, for which nothing must join, then warnings. What the joiners themselves are
 * in the cluster already, such as a learner that was added and not started, is none.
 */
export function diagnoseJoin(view: JoinView): Finding[] {
  const urls = new Set(view.joiners.flatMap(({ peerUrls }) => peerUrls));
  const isJoiner = ({ member }: MemberView): boolean =>
    member?.peerURLs.some((url) => urls.has(url)) === true;
  const members = view.cluster.members.filter((one) => !isJoiner(one));
  const cluster = { ...view.cluster, members };
  const found = [
    ...[checkLogin, checkEndpoints, checkReachable, checkOneCluster].flatMap((one) => one(cluster)),
    ...checkLeader(cluster),
    ...checkAlarms(cluster),
    ...checkJoinVersions(cluster),
    ...checkLearners(cluster),
    ...view.peerLists.flatMap((list) => differences(view.cluster, list)),
    ...checkFeatures(cluster),
    ...view.joiners.flatMap((one) => [
      ...checkSpaceFor(cluster, one),
      ...checkUrls(cluster, one),
      ...checkNames(cluster, one),
    ]),
    ...checkClocks(cluster),
  ];
  const worst = (one: Finding): number => (one.severity === "error" ? 0 : 1);
  return found.sort((a, b) => worst(a) - worst(b));
}

/** Members that a database has and the cluster's list has not, and the reverse. */
export function diagnoseStored(
  view: ClusterView,
  label: string,
  stored: readonly Member[],
): Finding[] {
  return differing(view, stored).map((text) =>
    problem("members", label, {
      seen: `its database and its list of members differ: ${text}`,
      right: "the members in the database (v3store) are those of the cluster (v2store in etcd 3.5)",
      next:
        `upgrade all members to etcd ${REPAIRED} or later of 3.5, which copies the list into the database at its ` +
        `start; with etcd 3.6 or later remove those that are not there ("member remove ID"). The list:`,
      run: [ctl(view, "member list -w table")],
    }),
  );
}

function differences(view: ClusterView, { label, members }: PeerList): Finding[] {
  return differing(view, members).map((text) =>
    problem("members", label, {
      seen: `its peer port and the client ports list other members: ${text}`,
      right: "all members have one list",
      next:
        "wait until changes of the members are applied everywhere; if it stays, remove those that are not there " +
        '("member remove ID") or restart this member. The list:',
      run: [ctl(view, "member list -w table")],
    }),
  );
}

/** How other members differ from those that the cluster lists; nothing where they do not. */
function differing(view: ClusterView, members: readonly Member[]): string[] {
  const listed = membersOf(view.members).flatMap(({ member }) =>
    member === undefined ? [] : [member],
  );
  if (listed.length === 0) return [];
  const shown = (id: bigint, name: string, urls: readonly string[]): string =>
    `${idToHex(id)} (${[name, ...urls].filter((text) => text !== "").join(", ")})`;
  const only = members
    .filter(({ id }) => listed.every(({ ID }) => ID !== id))
    .map(({ id, name, peerUrls }) => shown(id, name, peerUrls));
  const missing = listed
    .filter(({ ID }) => members.every(({ id }) => id !== ID))
    .map(({ ID, name, peerURLs }) => shown(ID, name, peerURLs));
  const parts = [
    ...(only.length === 0 ? [] : [`only there: ${only.join("; ")}`]),
    ...(missing.length === 0 ? [] : [`missing there: ${missing.join("; ")}`]),
  ];
  return parts.length === 0 ? [] : [parts.join("; ")];
}

function checkJoinVersions(view: ClusterView): Finding[] {
  return membersOf(view.members).flatMap(({ label, status }): Finding[] => {
    if (status === undefined) return [];
    const { version } = status;
    const common = { severity: "error", check: "version", member: label, run: [] } as const;
    const right = `etcd ${OLDEST} to ${apiVersion}`;
    if (release(version) < release(OLDEST)) {
      const next =
        `upgrade etcd first, one minor release after the other, to ${REPAIRED} or later: ` +
        `its log before ${OLDEST} is another one`;
      return [{ ...common, seen: `version ${version}`, right, next }];
    }
    if (release(version) <= release(apiVersion)) return [];
    const next = `use a release of Quorate that knows etcd ${version}, or keep etcd at ${apiVersion}`;
    return [{ ...common, seen: `version ${version}`, right, next }];
  });
}

function checkLearners(view: ClusterView): Finding[] {
  return view.members.flatMap(({ label, member }): Finding[] => {
    if (member?.isLearner !== true) return [];
    return [
      problem("learner", label, {
        seen: `is a learner (${member.peerURLs.join(",")}), and etcd takes one at a time`,
        right: "no learner while another member joins",
        next:
          `promote it if it is to stay ("member promote ${idToHex(member.ID)}"); if nobody needs it, ` +
          'or it is a shadow whose host died ("quorate shadow --leave" there does the same), remove it:',
        run: [ctl(view, `member remove ${idToHex(member.ID)}`)],
      }),
    ];
  });
}

/** The features of a member that its metrics name (etcd 3.6 and later), as far as they count. */
function featuresOf({ metrics }: MemberView): Map<string, boolean> {
  const found = new Map<string, boolean>();
  for (const { labels, value } of metrics?.series("etcd_server_feature_enabled") ?? []) {
    const name = /(?:^|,)name="(\w+)"/.exec(labels)?.[1];
    if (name !== undefined && REPLICATED.has(name)) found.set(name, value === 1);
  }
  return found;
}

function checkFeatures(view: ClusterView): Finding[] {
  const members = membersOf(view.members).filter((one) => !isOurs(one));
  const known = members.map((one) => ({ label: one.label, features: featuresOf(one) }));
  return [...REPLICATED].flatMap((name): Finding[] => {
    const on = known.filter(({ features }) => features.get(name) === true);
    const off = known.filter(({ features }) => features.get(name) === false);
    if (on.length === 0) return [];
    const where = on.map(({ label }) => label).join(", ");
    const seen =
      off.length === 0
        ? `the feature ${name} is on, and changes what the log holds`
        : `the feature ${name} is on here and off on ${off.map(({ label }) => label).join(", ")}`;
    return [
      warning("features", where, {
        seen,
        right: "one setting on all members, of the new program too",
        next: `start new voters with --feature-gates=${name}=true, or turn it off everywhere first; a learner needs neither`,
      }),
    ];
  });
}

function checkSpaceFor(view: ClusterView, { space }: Joiner): Finding[] {
  const largest = Math.max(0, ...view.members.map(({ status }) => status?.dbSize ?? 0));
  if (space === undefined || largest === 0) return [];
  const needed = COPIES * largest + BESIDE_BYTES;
  if (space.freeBytes >= needed) return [];
  return [
    problem("space", "client", {
      seen: `${humanBytes(space.freeBytes)} are free in ${space.path}; the database has ${humanBytes(largest)}`,
      right: `${humanBytes(needed)}: the received database, its copy and the log stand there for a time`,
      next: "free space or choose another --data-dir; defragmenting the members makes their databases smaller:",
      run: [ctl(view, "defrag --cluster --command-timeout=10m")],
    }),
  ];
}

/** A member that speaks TLS to its peers beside members that do not, or the reverse. */
function checkUrls(view: ClusterView, { peerUrls }: Joiner): Finding[] {
  const schemes = (urls: readonly string[]) => new Set(urls.map((url) => /^\w+/.exec(url)?.[0]));
  const theirs = schemes(view.members.flatMap(({ member }) => member?.peerURLs ?? []));
  const [scheme] = theirs;
  const other = peerUrls.find((url) => theirs.size === 1 && !url.startsWith(`${scheme}:`));
  if (other === undefined) return [];
  return [
    problem("peer-urls", "client", {
      seen: `the new member advertises ${other}, and the peer URLs of all others are ${scheme}`,
      right: `peer URLs of the scheme ${scheme}`,
      next:
        scheme === "https"
          ? "advertise an https URL, with --peer-cert-file, --peer-key-file and --peer-trusted-ca-file"
          : "advertise an http URL, as the others do",
    }),
  ];
}

/** Names that the certificate of the advertised URLs lacks, and its dates. */
function checkNames(view: ClusterView, { peerUrls, certificate }: Joiner): Finding[] {
  if (certificate === undefined) return [];
  const { path, pem } = certificate;
  const finding = (seen: string, right: string): Finding =>
    problem("certificate", "client", {
      seen: `${path} ${seen}`,
      right,
      next: "issue one with every host and address of --initial-advertise-peer-urls, from the CA of the peers",
    });
  const [block] = pemBlocks(pem, "CERTIFICATE");
  if (block === undefined)
    return [finding("has no certificate in PEM", "a certificate for the peer port")];
  const shown = new X509Certificate(block.text);
  const findings: Finding[] = [];
  if (shown.validToDate.getTime() <= view.nowMs)
    findings.push(finding(`expired at ${shown.validTo}`, "a certificate that is valid"));
  for (const url of peerUrls) {
    const target = url.startsWith("https:") ? targetOf(url, undefined) : undefined;
    if (target === undefined) continue;
    const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
    const match = isIP(host) === 0 ? shown.checkHost(host) : shown.checkIP(host);
    if (match === undefined) {
      const names = shown.subjectAltName ?? "no names";
      findings.push(finding(`is not for the host of ${url}: it has ${names}`, `it has ${host}`));
    }
  }
  return findings;
}

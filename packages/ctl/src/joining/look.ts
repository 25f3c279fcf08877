/**
 * Examines a running cluster before a member joins it: each member by its client port and its peer
 * port, and the members that the leader's database holds.
 */
import { rmSync } from "node:fs";
import type { Invocation } from "@quorate/cli";
import { nodeDisk } from "@quorate/host/node";
import { decodeMembers, etcdFileCluster, type Member } from "@quorate/store";
import { type Access, clientOf } from "../connect/globals.ts";
import { saveSnapshot } from "../connect/save-snapshot.ts";
import { commandMaker } from "../doctor/commands.ts";
import type { Finding, Note } from "../doctor/finding.ts";
import { look } from "../doctor/look.ts";
import { type ClusterView, type MemberView, membersOf } from "../doctor/view.ts";
import { type ClientTls, httpGet } from "../observe/http.ts";
import { targetOf } from "../observe/listed-member.ts";
import { prober } from "../observe/prober.ts";
import { hasResponded } from "../observe/responded.ts";
import { diagnoseJoin, diagnoseStored, type Joiner, type PeerList } from "./diagnose.ts";

/** Each request to a member. */
const TIMEOUT_MS = 5000;
/** A clock that is further off is reported. */
const CLOCK_LIMIT_MS = 1000;
const LIMITS = { fsyncMs: 100, clockMs: CLOCK_LIMIT_MS, certificateDays: 1 };

/** What the cluster is asked with. */
export interface JoinAccess {
  /** Endpoints of the client ports. */
  readonly endpoints: readonly string[];
  readonly access: Access;
  /** For the members' peer ports; undefined where they have no TLS. */
  readonly peerTls: ClientTls | undefined;
}

export interface JoinCheck {
  readonly findings: readonly Finding[];
  /** What could not be examined. */
  readonly notes: readonly Note[];
  readonly view: ClusterView;
}

/** The findings against new members. Rejects with Exit where no client can be made. */
export async function checkJoin(
  invocation: Invocation,
  { endpoints, access, peerTls }: JoinAccess,
  joiners: readonly Joiner[],
): Promise<JoinCheck> {
  const asked = prober(invocation, access, TIMEOUT_MS);
  try {
    const options = { endpoints, tls: access.tls, timeoutMs: TIMEOUT_MS };
    const { members, notes } = await look(asked, options);
    const view: ClusterView = {
      members,
      files: [],
      disk: undefined,
      nowMs: Date.now(),
      limits: LIMITS,
      endpoint: members.find(hasResponded)?.endpoint ?? "",
      command: commandMaker(invocation.flags, invocation.io.env),
    };
    const lists = await Promise.all(membersOf(members).map((one) => peerListOf(one, peerTls)));
    const peerLists = lists.filter((one) => "members" in one);
    const failed = lists.filter((one) => "text" in one);
    return {
      findings: diagnoseJoin({ cluster: view, peerLists, joiners }),
      notes: [...notes, ...failed],
      view,
    };
  } finally {
    asked.close();
  }
}

/**
 * The client URLs of the members that the peer ports among some URLs list; a URL that is no peer
 * port's stays as it is.
 */
export async function membersEndpoints(
  urls: readonly string[],
  peerTls: ClientTls | undefined,
): Promise<readonly string[]> {
  const found = await Promise.all(
    urls.map(async (url) => {
      const members = await peerMembers(url, peerTls).catch(() => []);
      const endpoints = members.flatMap(({ clientUrls }) => clientUrls);
      return endpoints.length === 0 ? [url] : endpoints;
    }),
  );
  return [...new Set(found.flat())];
}

async function peerMembers(url: string, tls: ClientTls | undefined): Promise<readonly Member[]> {
  const target = targetOf(url, undefined);
  if (target === undefined) throw new Error("no URL");
  const { status, body } = await httpGet(target, "/members", tls, TIMEOUT_MS);
  if (status !== 200) throw new Error(`status ${status}`);
  return decodeMembers(Buffer.from(body));
}

/** GET /members of a peer port (etcd: etcdhttp.NewPeerHandler). */
async function peerListOf(
  { label, member }: MemberView,
  tls: ClientTls | undefined,
): Promise<PeerList | { readonly member: string; readonly text: string }> {
  let reason = "it has no peer URL";
  for (const url of member?.name === "" ? [] : (member?.peerURLs ?? [])) {
    try {
      return { label, members: await peerMembers(url, tls) };
    } catch (error) {
      reason = `${url}: ${(error as Error).message}`;
    }
  }
  return {
    member: label,
    text: `its list of members on the peer port was not examined: ${reason}`,
  };
}

/**
 * The findings against the members in the leader's database, of which a snapshot is saved at `path`
 * for the time of the call: a new member begins with such a one.
 * @throws ClientError, EtcdFileError, BoltDamageError, and the errors of the disk
 */
export async function checkStored(
  invocation: Invocation,
  { access }: Pick<JoinAccess, "access">,
  view: ClusterView,
  path: string,
): Promise<readonly Finding[]> {
  const responding = membersOf(view.members).filter(hasResponded);
  const leader =
    responding.find(({ status }) => status.leader === status.header?.memberId) ?? responding[0];
  if (leader === undefined) return [];
  const { client } = await clientOf(invocation, [leader.endpoint], { access });
  try {
    await saveSnapshot(client, path, invocation.io);
    return diagnoseStored(view, leader.label, etcdFileCluster(nodeDisk, path).members);
  } finally {
    client.close();
    rmSync(path, { force: true });
  }
}

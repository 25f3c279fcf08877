/** The cluster that is being moved: its members now, each asked by itself, and changes to them. */
import { Exit, ExitCode, type Invocation } from "@quorate/cli";
import { type Client, ClientError } from "@quorate/client";
import { fromUtf8, type Member, type StatusResponse } from "@quorate/proto";
import { accessOf, type ClientKit, clientOf, endpointsOf } from "../connect/globals.ts";
import { logIn } from "../connect/login.ts";
import { httpGet } from "../observe/http.ts";
import { targetOf } from "../observe/listed-member.ts";
import type { Present } from "./plan.ts";

/** A hash may be asked for while a member has not applied the revision, or compacts. */
const HASH_ATTEMPTS = 60;
const HASH_PAUSE_MS = 250;
const VERSION_TIMEOUT_MS = 5000;

/** A member that responds. */
export interface Seen {
  readonly member: Member;
  readonly endpoint: string;
  readonly status: StatusResponse;
}

/** Members that have the same history up to a revision. */
export interface Compared {
  readonly revision: number;
  readonly members: number;
  readonly clientUrls: readonly string[];
}

export class MovingCluster {
  readonly #invocation: Invocation;
  #endpoints: readonly string[] = [];
  #kit: ClientKit | undefined;

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
  }

  /** A client of the members that there are now. Rejects with Exit, ClientError. */
  async client(): Promise<Client> {
    if (this.#kit === undefined) {
      if (this.#endpoints.length === 0) this.#endpoints = await endpointsOf(this.#invocation);
      this.#kit = await clientOf(this.#invocation, this.#endpoints);
      await logIn(this.#kit.client, this.#invocation.io, "refusal");
    }
    return this.#kit.client;
  }

  close(): void {
    this.#kit?.client.close();
    this.#kit = undefined;
  }

  /**
   * The members by a quorum, with those that respond; clients from before may be closed. Rejects
   * with ClientError.
   */
  async look(): Promise<{ readonly members: readonly Member[]; readonly seen: readonly Seen[] }> {
    const client = await this.client();
    const { members } = await client.memberList();
    const found = await Promise.all(members.map((member) => this.#see(client, member)));
    const seen = found.filter((one) => one !== undefined);
    // Members leave; the client must not stay with those that have left.
    const endpoints = seen.filter(({ member }) => !member.isLearner).map((one) => one.endpoint);
    if (endpoints.length > 0 && endpoints.join() !== this.#endpoints.join()) {
      this.close();
      this.#endpoints = endpoints;
    }
    return { members, seen };
  }

  async #see(client: Client, member: Member): Promise<Seen | undefined> {
    for (const endpoint of member.clientURLs) {
      try {
        const status = await client.status(endpoint);
        if (status.header?.memberId === member.ID) return { member, endpoint, status };
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
      }
    }
    return undefined;
  }

  /**
   * The cluster's version, such as "3.7.0"; undefined where a member does not tell it (GET /version
   * of etcd: etcdhttp.HandleVersion). Rejects with Exit.
   */
  async version([one]: readonly Seen[]): Promise<string | undefined> {
    const { tls } = await accessOf(this.#invocation);
    const target = one && targetOf(one.endpoint, tls);
    if (target === undefined) return undefined;
    try {
      const { body } = await httpGet(target, "/version", tls, VERSION_TIMEOUT_MS);
      const { etcdcluster } = JSON.parse(body) as { etcdcluster?: unknown };
      return typeof etcdcluster === "string" ? etcdcluster : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * Compares the history of all members that were started, at one revision.
   * @throws Exit where they differ, or where one does not respond
   */
  async compareHashes(): Promise<Compared> {
    for (let attempt = 1; ; attempt++) {
      const { members, seen } = await this.look();
      const silent = silentOf(members, seen);
      if (silent.length > 0) {
        if (attempt === HASH_ATTEMPTS)
          throw new Exit(
            ExitCode.error,
            `${silent.map(describeSilent).join("; ")}: nothing more is changed`,
          );
        await this.#invocation.io.sleep(HASH_PAUSE_MS);
        continue;
      }
      const client = await this.client();
      const { header } = await client.get(fromUtf8("a"), { countOnly: true });
      const revision = header.revision;
      try {
        const hashes = await Promise.all(
          seen.map(async ({ member, endpoint }) => ({
            member,
            ...(await client.hashKv(endpoint, revision)),
          })),
        );
        const [first] = hashes;
        const comparable = hashes.every((one) => one.compactRevision === first?.compactRevision);
        const differs = hashes.find((one) => one.hash !== first?.hash);
        if (comparable && differs !== undefined && first !== undefined) {
          throw new Exit(
            ExitCode.error,
            `${first.member.name} and ${differs.member.name} differ at revision ${revision} ` +
              `(hashes ${first.hash} and ${differs.hash}): nothing more is changed. ` +
              '"quoratectl check consistency" shows where; turn back, or remove the wrong one',
          );
        }
        if (comparable) {
          const clientUrls = members.flatMap(({ clientURLs }) => clientURLs);
          return { revision, members: hashes.length, clientUrls };
        }
      } catch (error) {
        if (!(error instanceof ClientError) || attempt === HASH_ATTEMPTS) throw error;
      }
      if (attempt === HASH_ATTEMPTS)
        throw new Exit(
          ExitCode.error,
          "the members compact too fast for their hashes to be compared",
        );
      await this.#invocation.io.sleep(HASH_PAUSE_MS);
    }
  }
}

/** Members that have been started, and do not respond. */
const silentOf = (members: readonly Member[], seen: readonly Seen[]): Member[] =>
  members.filter(({ ID, name }) => name !== "" && !seen.some(({ member }) => member.ID === ID));

const describeSilent = ({ name, clientURLs }: Member): string =>
  `${name} does not respond at ${clientURLs.join(", ")}`;

/** The members as a plan takes them. */
export function presentOf(members: readonly Member[], seen: readonly Seen[]): Present[] {
  const [newest] = [...seen].sort((a, b) => b.status.raftTerm - a.status.raftTerm);
  return members.map(({ ID, name, peerURLs, isLearner }) => ({
    id: ID,
    name,
    peerUrls: peerURLs,
    isLearner,
    isLeader: newest?.status.leader === ID,
  }));
}

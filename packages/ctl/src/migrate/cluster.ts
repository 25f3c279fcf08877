/** The cluster that is being moved: its members now, each asked by itself, and changes to them. */
import { Exit, ExitCode, type Invocation } from "@quorate/cli";
import { type Client, ClientError } from "@quorate/client";
import { AlarmType, fromUtf8, idToHex, type Member, type StatusResponse } from "@quorate/proto";
import { type ClientKit, clientOf, endpointsOf } from "../connect/globals.ts";
import { logIn } from "../connect/login.ts";
import type { Present } from "./plan.ts";

/** A hash may be asked for while a member has not applied the revision, or compacts. */
const HASH_ATTEMPTS = 60;
const HASH_PAUSE_MS = 250;

/** A member that responds. */
export interface Seen {
  readonly member: Member;
  readonly endpoint: string;
  readonly status: StatusResponse;
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

  /** Why the cluster cannot be moved now. */
  async problems(): Promise<string[]> {
    const { members, seen } = await this.look();
    const problems: string[] = [];
    problems.push(...silentOf(members, seen).map(describeSilent));
    for (const { ID, name, isLearner } of members) {
      if (name === "" && !isLearner) problems.push(`the voter ${idToHex(ID)} was never started`);
    }
    for (const { member, status } of seen) {
      const [major = 0, minor = 0] = status.version.split(".").map(Number);
      if (major < 3 || (major === 3 && minor < 5))
        problems.push(`${member.name} is of version ${status.version}: etcd 3.5 is the oldest`);
    }
    const { alarms } = await (await this.client()).alarmList();
    for (const { memberID, alarm } of alarms) {
      const name = alarm === AlarmType.NOSPACE ? "NOSPACE" : "CORRUPT";
      problems.push(`the alarm ${name} of ${idToHex(memberID)} is raised`);
    }
    return problems;
  }

  /**
   * Compares the history of all members that respond, at one revision.
   * @returns the revision
   * @throws Exit where they differ
   */
  async compareHashes(): Promise<{ readonly revision: number; readonly members: number }> {
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
        if (comparable) return { revision, members: hashes.length };
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

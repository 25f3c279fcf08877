/**
 * A change of the membership whose outcome was not heard (a time-out, a member that went away) may
 * have been made. Given again it is refused, so the commands find out here whether the cluster
 * already is as they were asked to make it:
 *
 *     command            refused with                      made before if
 *     add                Peer URLs already exists, or      a member has exactly these peer URLs, no
 *                                                          name yet or the same name, and is a
 *                        what a second one is refused for  learner where one was asked for (or was
 *                                                          one and is a voter now)
 *     promote            can only promote a learner        the member is a voter
 *     remove             member not found                  no member has the id
 *
 * etcdctl fails in all three cases. For promote and remove that stays so unless --idempotent is
 * given, since an id that was mistyped cannot be told from one that was removed.
 */
import type { Client } from "@quorate/client";
import {
  type Member,
  MemberAddResponse,
  type MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
} from "@quorate/proto";
import type { Io } from "../io.ts";

/** The flag of promote and remove. */
export const idempotentFlag = {
  idempotent: {
    kind: "bool",
    defaultText: "false",
    doc: "succeed if it was done before, so that the command can be repeated",
  },
} as const;

/**
 * What a second `member add` is refused with. Its id is made of the URLs and the second; and the
 * first may have cost the quorum until the new member is started.
 */
const REFUSED_AGAIN = new Set<string | undefined>([
  "PeerURLExist",
  "MemberExist",
  "MemberNotEnoughStarted",
  "Unhealthy",
  "TooManyLearners",
]);

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code;
}

/**
 * The members as a majority knows them; as the member that is asked does where no majority answers.
 */
async function membersNow(client: Client): Promise<MemberListResponse> {
  try {
    return await client.memberList();
  } catch {
    return client.memberList({ linearizable: false });
  }
}

function sameUrls(member: Member, urls: readonly string[]): boolean {
  const wanted = new Set(urls);
  return member.peerURLs.length === wanted.size && member.peerURLs.every((url) => wanted.has(url));
}

export interface Addition {
  readonly name: string;
  readonly urls: readonly string[];
  readonly isLearner: boolean;
}

/**
 * Adds a member, or finds the one that an earlier command added. Rejects with the error of the
 * addition.
 */
export async function addOnce(
  client: Client,
  io: Io,
  { name, urls, isLearner }: Addition,
): Promise<MemberAddResponse> {
  try {
    return await client.memberAdd(urls, { isLearner });
  } catch (error) {
    if (!REFUSED_AGAIN.has(codeOf(error))) throw error;
    const answer = await membersNow(client).catch(() => undefined);
    const found = answer?.members.find(
      (member) => sameUrls(member, urls) && (member.name === "" || member.name === name),
    );
    if (answer === undefined || found === undefined) throw error;
    const id = found.ID.toString(16);
    if (found.isLearner && !isLearner) {
      io.stderr(
        `Note: member ${id} with these peer URLs is a learner; "member promote ${id}" makes it a voter\n`,
      );
      throw error;
    }
    // A voter that has not been started was added as one; one that has may have been promoted.
    if (!found.isLearner && isLearner && found.name === "") {
      io.stderr(
        `Note: member ${id} with these peer URLs was added as a voter; "member remove ${id}" takes it away again\n`,
      );
      throw error;
    }
    io.stderr(`Note: member ${id} with these peer URLs was added before; nothing was changed\n`);
    return MemberAddResponse.create({
      header: answer.header,
      member: found,
      members: answer.members,
    });
  }
}

/**
 * Promotes a learner; with `isRepeatable`, a voter is as good. Rejects with the error of the
 * promotion.
 */
export async function promoteOnce(
  client: Client,
  io: Io,
  id: bigint,
  isRepeatable: boolean,
): Promise<MemberPromoteResponse> {
  try {
    return await client.memberPromote(id);
  } catch (error) {
    if (!isRepeatable || codeOf(error) !== "MemberNotLearner") throw error;
    const { header, members } = await client.memberList();
    if (!members.some((member) => member.ID === id && !member.isLearner)) throw error;
    io.stderr(`Note: member ${id.toString(16)} is a voter already; nothing was changed\n`);
    return MemberPromoteResponse.create({ header, members });
  }
}

/**
 * Removes a member; with `isRepeatable`, one that is not there is as good. Rejects with the error
 * of the removal.
 */
export async function removeOnce(
  client: Client,
  io: Io,
  id: bigint,
  isRepeatable: boolean,
): Promise<MemberRemoveResponse> {
  try {
    return await client.memberRemove(id);
  } catch (error) {
    if (!isRepeatable || codeOf(error) !== "MemberNotFound") throw error;
    const { header, members } = await client.memberList();
    if (members.some((member) => member.ID === id)) throw error;
    io.stderr(`Note: no member has the id ${id.toString(16)}; nothing was changed\n`);
    return MemberRemoveResponse.create({ header, members });
  }
}

/**
 * Makes membership changes repeatable. A change whose outcome is unknown (a timeout, a lost member)
 * may have succeeded, and is then refused when repeated. The commands detect that here:
 *
 *     command            refused with                      made before if
 *     add                Peer URLs already exists, or      a member has exactly these peer URLs, no
 *                                                          name yet or the same name, and is a
 *                        what a second one is refused for  learner where one was asked for (or was
 *                                                          one and is a voter now)
 *     promote            can only promote a learner        the member is a voter
 *     remove             member not found                  no member has the id
 *
 * etcdctl fails in all three cases. promote and remove do so too unless --idempotent is set, since
 * a mistyped id looks like the id of a removed member.
 */

import type { Io } from "@quorate/cli";
import { boolFlag } from "@quorate/cli";
import type { Client } from "@quorate/client";
import {
  type Member,
  MemberAddResponse,
  type MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
} from "@quorate/proto";

/** The flag of promote and remove. */
export const idempotentFlag = {
  idempotent: boolFlag(
    "succeed if the change was made before, so that the command can be repeated",
  ),
} as const;

/**
 * Error codes of a repeated `member add`. It may get another id, which depends on the time in
 * seconds; and the first one may have cost the quorum until the new member is started.
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
 * The members by a linearizable read; without a quorum, as one member knows them.
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
    const list = await membersNow(client).catch(() => undefined);
    const found = list?.members.find(
      (member) => sameUrls(member, urls) && (member.name === "" || member.name === name),
    );
    if (list === undefined || found === undefined) throw error;
    const id = found.ID.toString(16);
    if (found.isLearner && !isLearner) {
      io.stderr(
        `Note: member ${id} with these peer URLs is a learner; "member promote ${id}" makes it a voter\n`,
      );
      throw error;
    }
    // A voter that never started was added as a voter; one that started may have been promoted.
    if (!found.isLearner && isLearner && found.name === "") {
      io.stderr(
        `Note: member ${id} with these peer URLs was added as a voter; "member remove ${id}" removes it again\n`,
      );
      throw error;
    }
    io.stderr(`Note: member ${id} with these peer URLs was added before; nothing was changed\n`);
    return MemberAddResponse.create({
      header: list.header,
      member: found,
      members: list.members,
    });
  }
}

/**
 * Promotes a learner; with `isRepeatable`, accepts a voter. Rejects with the error of the
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
 * Removes a member; with `isRepeatable`, accepts a missing one. Rejects with the error of the
 * removal.
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

/** Forms of the responses about members. */

import type { JsonValue } from "@quorate/cli";
import {
  idToHex,
  Member,
  MemberAddResponse,
  MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
  MemberUpdateResponse,
  type MessageType,
  MoveLeaderResponse,
  type ResponseHeader,
} from "@quorate/proto";
import {
  type FieldLine,
  type Form,
  formOf,
  headerJson,
  idField,
  messageJson,
  textField,
} from "./form.ts";

/** The fields that all responses about members share. */
interface Members {
  readonly header: ResponseHeader | undefined;
  /** The member that was added. */
  readonly member?: Member | undefined;
  readonly members: readonly Member[];
}

/** With --hex, ids of members and clusters are hexadecimal texts and never left out. */
function hexMembersJson({ header, member, members }: Members): JsonValue {
  const hexMember = (one: Member): JsonValue => ({
    ...(messageJson(Member.typeName, one) as object),
    ID: idToHex(one.ID),
  });
  return {
    header: {
      ...(headerJson(header) as object),
      cluster_id: idToHex(header?.clusterId ?? 0n),
      member_id: idToHex(header?.memberId ?? 0n),
    },
    member: member && hexMember(member),
    members: members.map(hexMember),
  };
}

/** The form of a response about members. */
function membersForm<T extends Members>(
  type: MessageType<T>,
  parts: Parameters<typeof formOf<T>>[1],
): Form<T> {
  return {
    ...formOf(type, parts),
    json: (response, { isHex }) =>
      isHex ? hexMembersJson(response) : messageJson(type.typeName, response),
  };
}

/** The line that reports a change of one member. */
function changeLine(id: bigint, change: string, header: ResponseHeader | undefined): string {
  const padded = (one: bigint): string => idToHex(one).padStart(16);
  return `Member ${padded(id)} ${change} cluster ${padded(header?.clusterId ?? 0n)}\n`;
}

export const memberListForm = membersForm(MemberListResponse, {
  table: ({ members }) => ({
    header: ["ID", "Status", "Name", "Peer Addrs", "Client Addrs", "Is Learner"],
    rows: members.map((member) => [
      idToHex(member.ID),
      member.name === "" ? "unstarted" : "started",
      member.name,
      member.peerURLs.join(","),
      member.clientURLs.join(","),
      String(member.isLearner),
    ]),
  }),
  fields: ({ members }, style) =>
    members.flatMap((member): FieldLine[] => [
      ["ID", idField(member.ID, style)],
      textField("Name", member.name),
      ...member.peerURLs.map((url) => textField("PeerURL", url)),
      ...member.clientURLs.map((url) => textField("ClientURL", url)),
      ["IsLearner", member.isLearner],
      "",
    ]),
});

export const memberAddForm = membersForm(MemberAddResponse, {
  simple: ({ header, member }) =>
    changeLine(
      member?.ID ?? 0n,
      member?.isLearner === true ? "added as learner to" : "added to",
      header,
    ),
});

/** The form of a change of one member. @param id of it, which the response does not repeat */
const changeForm =
  <T extends Members>(type: MessageType<T>, change: string) =>
  (id: bigint) =>
    membersForm(type, { simple: ({ header }) => changeLine(id, change, header) });

export const memberRemoveForm = changeForm(MemberRemoveResponse, "removed from");
export const memberUpdateForm = changeForm(MemberUpdateResponse, "updated in");
export const memberPromoteForm = changeForm(MemberPromoteResponse, "promoted in");

/** The old and the new leader are not in the response. */
export const moveLeaderForm = (leader: bigint, target: bigint) =>
  formOf(MoveLeaderResponse, {
    simple: () => `Leadership transferred from ${idToHex(leader)} to ${idToHex(target)}\n`,
  });

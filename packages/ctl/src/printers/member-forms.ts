/** Forms of the responses about members. */

import type { JsonValue } from "@quorate/cli";
import {
  idToHex,
  type Member,
  MemberAddResponse,
  MemberListResponse,
  MemberPromoteResponse,
  MemberRemoveResponse,
  MemberUpdateResponse,
  MoveLeaderResponse,
  type ResponseHeader,
} from "@quorate/proto";
import {
  type FieldLine,
  type Form,
  type FormStyle,
  headerJson,
  idField,
  present,
  textField,
} from "./form.ts";

/** The fields that all responses about members share. */
interface Members {
  readonly header: ResponseHeader | undefined;
  /** The member that was added. */
  readonly member?: Member | undefined;
  readonly members: readonly Member[];
}

function memberJson(member: Member): JsonValue {
  return {
    ID: present(member.ID),
    name: present(member.name),
    peerURLs: present(member.peerURLs),
    clientURLs: present(member.clientURLs),
    isLearner: present(member.isLearner),
  };
}

function membersJson(response: Members, { isHex }: FormStyle): JsonValue {
  if (isHex) return hexMembersJson(response);
  const { header, member, members } = response;
  return {
    header: headerJson(header),
    member: member === undefined ? undefined : memberJson(member),
    members: present(members.map(memberJson)),
  };
}

/** With --hex, ids of members and clusters are hexadecimal texts and never left out. */
function hexMembersJson({ header, member, members }: Members): JsonValue {
  const hexMember = (one: Member): JsonValue => ({
    ...(memberJson(one) as object),
    ID: idToHex(one.ID),
  });
  return {
    header: {
      cluster_id: idToHex(header?.clusterId ?? 0n),
      member_id: idToHex(header?.memberId ?? 0n),
      revision: present(header?.revision ?? 0),
      raft_term: present(header?.raftTerm ?? 0),
    },
    member: member === undefined ? undefined : hexMember(member),
    members: members.map(hexMember),
  };
}

/** The line that reports a change of one member. */
function changeLine(id: bigint, change: string, header: ResponseHeader | undefined): string {
  const padded = (one: bigint): string => idToHex(one).padStart(16);
  return `Member ${padded(id)} ${change} cluster ${padded(header?.clusterId ?? 0n)}\n`;
}

export const memberListForm: Form<MemberListResponse> = {
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
  json: membersJson,
  protobuf: (response) => MemberListResponse.encode(response),
};

export const memberAddForm: Form<MemberAddResponse> = {
  simple: ({ header, member }) =>
    changeLine(
      member?.ID ?? 0n,
      member?.isLearner === true ? "added as learner to" : "added to",
      header,
    ),
  json: membersJson,
  protobuf: (response) => MemberAddResponse.encode(response),
};

/** @param id of the member, which the response does not repeat */
export function memberRemoveForm(id: bigint): Form<MemberRemoveResponse> {
  return {
    simple: ({ header }) => changeLine(id, "removed from", header),
    json: membersJson,
    protobuf: (response) => MemberRemoveResponse.encode(response),
  };
}

/** @param id of the member, which the response does not repeat */
export function memberUpdateForm(id: bigint): Form<MemberUpdateResponse> {
  return {
    simple: ({ header }) => changeLine(id, "updated in", header),
    json: membersJson,
    protobuf: (response) => MemberUpdateResponse.encode(response),
  };
}

/** @param id of the member, which the response does not repeat */
export function memberPromoteForm(id: bigint): Form<MemberPromoteResponse> {
  return {
    simple: ({ header }) => changeLine(id, "promoted in", header),
    json: membersJson,
    protobuf: (response) => MemberPromoteResponse.encode(response),
  };
}

/** The old and the new leader are not in the response. */
export function moveLeaderForm(leader: bigint, target: bigint): Form<MoveLeaderResponse> {
  return {
    simple: () => `Leadership transferred from ${idToHex(leader)} to ${idToHex(target)}\n`,
    json: ({ header }) => ({ header: headerJson(header) }),
    protobuf: (response) => MoveLeaderResponse.encode(response),
  };
}

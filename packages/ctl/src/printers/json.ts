/**
 * JSON as Go writes etcd's messages: fields under their protobuf names, zero values left out, bytes
 * in base64.
 */
import {
  type AlarmResponse,
  type DeleteRangeResponse,
  type HashKVResponse,
  idToHex,
  type Member,
  type MemberAddResponse,
  type MemberListResponse,
  type MemberPromoteResponse,
  type MemberRemoveResponse,
  type MemberUpdateResponse,
  type MoveLeaderResponse,
  type PutResponse,
  type RangeResponse,
  type ResponseHeader,
  type StatusResponse,
  type TxnResponse,
} from "@quorate/proto";
import { goJson, type JsonValue } from "../go-format.ts";
import { type Form, headerJson, present, recordJson } from "./form.ts";
import type { EndpointAnswer, EndpointHealth, Printer, Sink } from "./printer.ts";

function rangeJson(response: RangeResponse): JsonValue {
  return {
    header: headerJson(response.header),
    kvs: present(response.kvs.map(recordJson)),
    more: present(response.more),
    count: present(response.count),
  };
}

function putJson(response: PutResponse): JsonValue {
  return {
    header: headerJson(response.header),
    prev_kv: response.prevKv === undefined ? undefined : recordJson(response.prevKv),
  };
}

function deleteJson(response: DeleteRangeResponse): JsonValue {
  return {
    header: headerJson(response.header),
    deleted: present(response.deleted),
    prev_kvs: present(response.prevKvs.map(recordJson)),
  };
}

function txnJson(answer: TxnResponse): JsonValue {
  const responses = answer.responses.map(({ response }): JsonValue => {
    switch (response?.case) {
      case "responseRange":
        return { Response: { response_range: rangeJson(response.value) } };
      case "responsePut":
        return { Response: { response_put: putJson(response.value) } };
      case "responseDeleteRange":
        return { Response: { response_delete_range: deleteJson(response.value) } };
      case "responseTxn":
        return { Response: { response_txn: txnJson(response.value) } };
      default:
        return { Response: {} };
    }
  });
  return {
    header: headerJson(answer.header),
    succeeded: present(answer.succeeded),
    responses: present(responses),
  };
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

/** Every answer about members has this. */
interface Members {
  readonly header: ResponseHeader | undefined;
  /** The one that was added. */
  readonly member?: Member | undefined;
  readonly members: readonly Member[];
}

function membersJson({ header, member, members }: Members): JsonValue {
  return {
    header: headerJson(header),
    member: member === undefined ? undefined : memberJson(member),
    members: present(members.map(memberJson)),
  };
}

/** With --hex the ids of members and clusters are hexadecimal texts, and always there. */
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

function statusJson(response: StatusResponse): JsonValue {
  const { downgradeInfo } = response;
  return {
    header: headerJson(response.header),
    version: present(response.version),
    dbSize: present(response.dbSize),
    leader: present(response.leader),
    raftIndex: present(response.raftIndex),
    raftTerm: present(response.raftTerm),
    raftAppliedIndex: present(response.raftAppliedIndex),
    errors: present(response.errors),
    dbSizeInUse: present(response.dbSizeInUse),
    isLearner: present(response.isLearner),
    storageVersion: present(response.storageVersion),
    dbSizeQuota: present(response.dbSizeQuota),
    downgradeInfo:
      downgradeInfo === undefined
        ? undefined
        : {
            enabled: present(downgradeInfo.enabled),
            targetVersion: present(downgradeInfo.targetVersion),
          },
  };
}

function hashJson(response: HashKVResponse): JsonValue {
  return {
    header: headerJson(response.header),
    hash: present(response.hash),
    compact_revision: present(response.compactRevision),
    hash_revision: present(response.hashRevision),
  };
}

export class JsonPrinter implements Printer {
  readonly #sink: Sink;
  readonly #isHex: boolean;

  constructor(sink: Sink, isHex: boolean) {
    this.#sink = sink;
    this.#isHex = isHex;
  }

  form<T>(form: Form<T>, answer: T): void {
    this.#print(form.json(answer));
  }

  get(response: RangeResponse): void {
    this.#print(rangeJson(response));
  }

  put(response: PutResponse): void {
    this.#print(putJson(response));
  }

  del(response: DeleteRangeResponse): void {
    this.#print(deleteJson(response));
  }

  txn(response: TxnResponse): void {
    this.#print(txnJson(response));
  }

  memberList(response: MemberListResponse): void {
    this.#members(response);
  }

  memberAdd(response: MemberAddResponse): void {
    this.#members(response);
  }

  memberRemove(_id: bigint, response: MemberRemoveResponse): void {
    this.#members(response);
  }

  memberUpdate(_id: bigint, response: MemberUpdateResponse): void {
    this.#members(response);
  }

  memberPromote(_id: bigint, response: MemberPromoteResponse): void {
    this.#members(response);
  }

  moveLeader(_leader: bigint, _target: bigint, response: MoveLeaderResponse): void {
    this.#print({ header: headerJson(response.header) });
  }

  #members(response: Members): void {
    this.#print(this.#isHex ? hexMembersJson(response) : membersJson(response));
  }

  endpointHealth(list: readonly EndpointHealth[]): void {
    this.#print(list.map((one) => ({ ...one, error: present(one.error) })));
  }

  endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void {
    this.#answers(
      list.map(({ endpoint, response }) => ({ Endpoint: endpoint, Status: statusJson(response) })),
    );
  }

  endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void {
    this.#answers(
      list.map(({ endpoint, response }) => ({ Endpoint: endpoint, HashKV: hashJson(response) })),
    );
  }

  alarm(response: AlarmResponse): void {
    const alarms = response.alarms.map(({ memberID, alarm }) => ({
      memberID: present(memberID),
      alarm: present(alarm),
    }));
    this.#print({ header: headerJson(response.header), alarms: present(alarms) });
  }

  /** An empty list is null in Go. */
  #answers(list: readonly JsonValue[]): void {
    if (list.length === 0) this.#sink.stdout("null\n");
    else this.#print(list);
  }

  #print(value: JsonValue): void {
    this.#sink.stdout(`${goJson(value)}\n`);
  }
}

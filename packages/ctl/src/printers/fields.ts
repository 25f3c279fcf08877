/** One field a line: "Name" : value. */
import {
  type AlarmResponse,
  type DeleteRangeResponse,
  fromUtf8,
  type HashKVResponse,
  idToHex,
  type MemberListResponse,
  type PutResponse,
  type RangeResponse,
  type ResponseHeader,
  type StatusResponse,
  type TxnResponse,
} from "@quorate/proto";
import { goQuote } from "../go-format.ts";
import { alarmName } from "./alarm-name.ts";
import { type FieldLine, type Form, recordFields, type Style } from "./form.ts";
import type { EndpointAnswer, EndpointHealth, Sink } from "./printer.ts";
import { RefusingPrinter } from "./refusing.ts";

type Scalar = string | number | bigint | boolean;

export class FieldsPrinter extends RefusingPrinter {
  readonly #sink: Sink;
  readonly #isHex: boolean;

  constructor(sink: Sink, isHex: boolean) {
    super("fields");
    this.#sink = sink;
    this.#isHex = isHex;
  }

  override form<T extends { readonly header: ResponseHeader | undefined }>(
    form: Form<T>,
    answer: T,
  ): void {
    if (form.fields === undefined) this.refuse();
    this.#header(answer.header);
    this.#lines(form.fields(answer, this.#style));
  }

  override get(response: RangeResponse): void {
    this.#header(response.header);
    for (const record of response.kvs) this.#record("", record);
    this.#field("More", response.more);
    this.#field("Count", response.count);
  }

  override put(response: PutResponse): void {
    this.#header(response.header);
    if (response.prevKv !== undefined) this.#record("Prev", response.prevKv);
  }

  override del(response: DeleteRangeResponse): void {
    this.#header(response.header);
    this.#field("Deleted", response.deleted);
    for (const record of response.prevKvs) this.#record("Prev", record);
  }

  override txn(answer: TxnResponse): void {
    this.#header(answer.header);
    this.#field("Succeeded", answer.succeeded);
    for (const { response } of answer.responses) {
      if (response?.case === "responseRange") this.get(response.value);
      else if (response?.case === "responsePut") this.put(response.value);
      else if (response?.case === "responseDeleteRange") this.del(response.value);
      else if (response?.case === "responseTxn") this.txn(response.value);
    }
  }

  override memberList(response: MemberListResponse): void {
    this.#header(response.header);
    for (const member of response.members) {
      this.#field("ID", this.#id(member.ID));
      this.#text("Name", member.name);
      for (const url of member.peerURLs) this.#text("PeerURL", url);
      for (const url of member.clientURLs) this.#text("ClientURL", url);
      this.#field("IsLearner", member.isLearner);
      this.#sink.stdout("\n");
    }
  }

  override endpointHealth(list: readonly EndpointHealth[]): void {
    for (const one of list) {
      this.#text("Endpoint", one.endpoint);
      this.#field("Health", one.health);
      this.#field("Took", one.took);
      this.#field("Error", one.error);
      this.#sink.stdout("\n");
    }
  }

  override endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void {
    for (const { endpoint, response } of list) {
      this.#header(response.header);
      this.#text("Version", response.version);
      this.#text("StorageVersion", response.storageVersion);
      this.#field("DBSize", response.dbSize);
      this.#field("DBSizeInUse", response.dbSizeInUse);
      this.#field("DBSizeQuota", response.dbSizeQuota);
      this.#field("Leader", response.leader);
      this.#field("IsLearner", response.isLearner);
      this.#field("RaftIndex", response.raftIndex);
      this.#field("RaftAppliedIndex", response.raftAppliedIndex);
      this.#field("Errors", `[${response.errors.join(" ")}]`);
      this.#text("Endpoint", endpoint);
      this.#text("DowngradeTargetVersion", response.downgradeInfo?.targetVersion ?? "");
      this.#field("DowngradeEnabled", response.downgradeInfo?.enabled ?? false);
      this.#sink.stdout("\n");
    }
  }

  override endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void {
    for (const { endpoint, response } of list) {
      this.#header(response.header);
      this.#text("Endpoint", endpoint);
      this.#field("Hash", response.hash);
      this.#field("HashRevision", response.hashRevision);
      this.#sink.stdout("\n");
    }
  }

  override alarm(response: AlarmResponse): void {
    this.#header(response.header);
    for (const { memberID, alarm } of response.alarms) {
      this.#field("MemberID", this.#id(memberID));
      this.#field("AlarmType", alarmName(alarm));
      this.#sink.stdout("\n");
    }
  }

  #header(header: ResponseHeader | undefined): void {
    this.#field("ClusterID", this.#id(header?.clusterId ?? 0n));
    this.#field("MemberID", this.#id(header?.memberId ?? 0n));
    // Only answers about keys have one.
    if (header !== undefined && header.revision > 0) this.#field("Revision", header.revision);
    this.#field("RaftTerm", header?.raftTerm ?? 0);
  }

  #record(prefix: string, record: Uint8Array): void {
    this.#lines(recordFields(prefix, record, this.#style));
  }

  #lines(lines: readonly FieldLine[]): void {
    for (const line of lines) {
      if (typeof line === "string") this.#sink.stdout(`${line}\n`);
      else this.#field(line[0], line[1]);
    }
  }

  get #style(): Style {
    return { isHex: this.#isHex, valueOnly: false };
  }

  #id(id: bigint): Scalar {
    return this.#isHex ? idToHex(id) : id;
  }

  #text(name: string, value: string): void {
    this.#field(name, goQuote(fromUtf8(value)));
  }

  #field(name: string, value: Scalar): void {
    this.#sink.stdout(`"${name}" : ${value}\n`);
  }
}

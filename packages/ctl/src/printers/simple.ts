/** The plain form: keys and values on lines of their own, the rest as comma-separated lists. */
import {
  type AlarmResponse,
  type DeleteRangeResponse,
  type HashKVResponse,
  idToHex,
  type MemberAddResponse,
  type MemberListResponse,
  type MemberPromoteResponse,
  type MemberRemoveResponse,
  type MemberUpdateResponse,
  type PutResponse,
  type RangeResponse,
  type ResponseHeader,
  type StatusResponse,
  type TxnResponse,
} from "@quorate/proto";
import { alarmName } from "./alarm-name.ts";
import { type Form, recordLines, type Style } from "./form.ts";
import { layOut, type Page } from "./page.ts";
import type { EndpointAnswer, EndpointHealth, Printer, Sink } from "./printer.ts";
import { hashTable, memberTable, statusTable, type Table } from "./tables.ts";

export class SimplePrinter implements Printer {
  readonly #sink: Sink;
  readonly #isHex: boolean;
  readonly #page: Page | undefined;
  /** Print values without their keys. */
  valueOnly = false;

  /** @param page what people look at; in a pipe, undefined */
  constructor(sink: Sink, isHex: boolean, page?: Page) {
    this.#sink = sink;
    this.#page = page;
    this.#isHex = isHex;
  }

  form<T>(form: Form<T>, answer: T): void {
    const text = form.simple(answer, this.#style);
    if (text.length > 0) this.#sink.stdout(text);
  }

  get(response: RangeResponse): void {
    this.#records(response.kvs);
  }

  put(response: PutResponse): void {
    this.#sink.stdout("OK\n");
    if (response.prevKv !== undefined) this.#records([response.prevKv]);
  }

  del(response: DeleteRangeResponse): void {
    this.#sink.stdout(`${response.deleted}\n`);
    this.#records(response.prevKvs);
  }

  txn(answer: TxnResponse): void {
    this.#sink.stdout(answer.succeeded ? "SUCCESS\n" : "FAILURE\n");
    for (const { response } of answer.responses) {
      this.#sink.stdout("\n");
      if (response?.case === "responseRange") this.get(response.value);
      else if (response?.case === "responsePut") this.put(response.value);
      else if (response?.case === "responseDeleteRange") this.del(response.value);
      else if (response?.case === "responseTxn") this.txn(response.value);
    }
  }

  memberList(response: MemberListResponse): void {
    this.#rows(memberTable(response));
  }

  memberAdd({ header, member }: MemberAddResponse): void {
    this.#member(
      member?.ID ?? 0n,
      member?.isLearner === true ? "added as learner to" : "added to",
      header,
    );
  }

  memberRemove(id: bigint, { header }: MemberRemoveResponse): void {
    this.#member(id, "removed from", header);
  }

  memberUpdate(id: bigint, { header }: MemberUpdateResponse): void {
    this.#member(id, "updated in", header);
  }

  memberPromote(id: bigint, { header }: MemberPromoteResponse): void {
    this.#member(id, "promoted in", header);
  }

  moveLeader(leader: bigint, target: bigint): void {
    this.#sink.stdout(`Leadership transferred from ${idToHex(leader)} to ${idToHex(target)}\n`);
  }

  #member(id: bigint, what: string, header: ResponseHeader | undefined): void {
    const padded = (one: bigint) => idToHex(one).padStart(16);
    this.#sink.stdout(`Member ${padded(id)} ${what} cluster ${padded(header?.clusterId ?? 0n)}\n`);
  }

  endpointHealth(list: readonly EndpointHealth[]): void {
    for (const { endpoint, took, error } of list) {
      if (error === "")
        this.#sink.stdout(
          `${endpoint} is healthy: successfully committed proposal: took = ${took}\n`,
        );
      else this.#sink.stderr(`${endpoint} is unhealthy: failed to commit proposal: ${error}\n`);
    }
  }

  endpointStatus(list: readonly EndpointAnswer<StatusResponse>[]): void {
    this.#rows(statusTable(list));
  }

  endpointHashKv(list: readonly EndpointAnswer<HashKVResponse>[]): void {
    this.#rows(hashTable(list));
  }

  alarm(response: AlarmResponse): void {
    for (const { memberID, alarm } of response.alarms) {
      this.#sink.stdout(
        `${memberID === 0n ? "" : `memberID:${memberID} `}alarm:${alarmName(alarm)}\n`,
      );
    }
  }

  get #style(): Style {
    return { isHex: this.#isHex, valueOnly: this.valueOnly };
  }

  #rows(table: Table): void {
    const { rows } = table;
    if (this.#page !== undefined) {
      this.#sink.stdout(layOut(table, this.#page));
      return;
    }
    for (const row of rows) this.#sink.stdout(`${row.join(", ")}\n`);
  }

  /** All records in one write: a range may have many. */
  #records(records: readonly Uint8Array[]): void {
    if (records.length > 0) this.#sink.stdout(recordLines(records, this.#style));
  }
}

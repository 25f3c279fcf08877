/** Forms of the responses about keys: get, put, del and txn. */

import type { JsonValue } from "@quorate/cli";
import {
  concat,
  DeleteRangeResponse,
  fromUtf8,
  type MessageType,
  PutResponse,
  RangeResponse,
  type ResponseOp,
  TxnResponse,
} from "@quorate/proto";
import {
  type FieldLine,
  type Form,
  type FormStyle,
  formOf,
  headerFields,
  headerJson,
  present,
  recordFields,
  recordLines,
} from "./form.ts";

/** A form whose simple format is bytes: the form of a transaction puts several of them together. */
interface RecordParts<T> {
  simple(response: T, style: FormStyle): Uint8Array;
  fields(response: T, style: FormStyle): readonly FieldLine[];
}

type RecordForm<T> = RecordParts<T> & Omit<Form<T>, "simple" | "fields" | "table">;

const recordForm = <T>(type: MessageType<T>, parts: RecordParts<T>) => ({
  ...formOf(type, parts),
  ...parts,
});

export const rangeForm = recordForm(RangeResponse, {
  simple: ({ kvs }, style) => recordLines(kvs, style),
  fields: ({ kvs, more, count }, style) => [
    ...kvs.flatMap((record) => recordFields("", record, style)),
    ["More", more],
    ["Count", count],
  ],
});

export const putForm = recordForm(PutResponse, {
  simple: ({ prevKv }, style) => concat([fromUtf8("OK\n"), recordLines(listOf(prevKv), style)]),
  fields: ({ prevKv }, style) =>
    listOf(prevKv).flatMap((record) => recordFields("Prev", record, style)),
});

export const deleteForm = recordForm(DeleteRangeResponse, {
  simple: ({ deleted, prevKvs }, style) =>
    concat([fromUtf8(`${deleted}\n`), recordLines(prevKvs, style)]),
  fields: ({ deleted, prevKvs }, style) => [
    ["Deleted", deleted],
    ...prevKvs.flatMap((record) => recordFields("Prev", record, style)),
  ],
});

export const txnForm: RecordForm<TxnResponse> & Form<TxnResponse> = {
  simple: ({ succeeded, responses }, style) =>
    concat([
      fromUtf8(succeeded ? "SUCCESS\n" : "FAILURE\n"),
      ...responses.flatMap((one) => [
        fromUtf8("\n"),
        withForm(one, (form, response) => form.simple(response, style)) ?? new Uint8Array(),
      ]),
    ]),
  fields: ({ succeeded, responses }, style) => [
    ["Succeeded", succeeded],
    ...responses.flatMap(
      (one) =>
        withForm(one, (form, response) => [
          ...headerFields(response.header, style),
          ...form.fields(response, style),
        ]) ?? [],
    ),
  ],
  json: ({ header, succeeded, responses }, style) => ({
    header: headerJson(header),
    succeeded: present(succeeded),
    responses: present(
      responses.map((one): JsonValue => {
        const json = withForm(one, (form, response) => form.json(response, style));
        return { Response: json === undefined ? {} : { [jsonName(one)]: json } };
      }),
    ),
  }),
  protobuf: (response) => TxnResponse.encode(response),
};

/** Calls `use` with the form and the content of an operation's response, if it has content. */
function withForm<R>(
  { response }: ResponseOp,
  use: <T extends Pick<PutResponse, "header">>(form: RecordForm<T>, response: T) => R,
): R | undefined {
  switch (response?.case) {
    case "responseRange":
      return use(rangeForm, response.value);
    case "responsePut":
      return use(putForm, response.value);
    case "responseDeleteRange":
      return use(deleteForm, response.value);
    case "responseTxn":
      return use(txnForm, response.value);
    default:
      return undefined;
  }
}

/** The protobuf name of the field that holds the response: "responsePut" is response_put. */
function jsonName({ response }: ResponseOp): string {
  return (response?.case ?? "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function listOf<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value];
}

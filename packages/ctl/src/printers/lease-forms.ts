/**
 * How answers about leases are printed. In JSON the header's members stand beside the others, as Go
 * writes an embedded struct.
 */

import type { JsonValue } from "@quorate/cli";
import {
  fromLatin1,
  type LeaseGrantResponse,
  type LeaseKeepAliveResponse,
  type LeaseLeasesResponse,
  type LeaseRevokeResponse,
  type LeaseTimeToLiveResponse,
  quoteBytes,
  ResponseHeader,
  toLatin1,
} from "@quorate/proto";
import { type FieldLine, type Form, type FormStyle, headerJson, paddedHex } from "./form.ts";

function withHeader(
  header: ResponseHeader | undefined,
  members: { readonly [name: string]: JsonValue },
): JsonValue {
  return { ...(headerJson(header) as object), ...members };
}

/**
 * etcdctl's own types for these answers take their protobuf form from the header that they embed,
 * and so print that alone.
 */
function headerBytes({ header }: { readonly header: ResponseHeader | undefined }): Uint8Array {
  return ResponseHeader.encode(header ?? {});
}

function idField(id: bigint, { isHex }: FormStyle): FieldLine {
  return ["ID", isHex ? paddedHex(id) : id];
}

export const grantForm: Form<LeaseGrantResponse> = {
  simple: ({ ID, TTL }) => `lease ${paddedHex(ID)} granted with TTL(${TTL}s)\n`,
  fields: ({ ID, TTL }, style) => [idField(ID, style), ["TTL", TTL]],
  json: ({ header, ID, TTL, error }) => withHeader(header, { ID, TTL, Error: error }),
  protobuf: headerBytes,
};

/** @param id the lease that was asked for, which the answer does not name */
export function revokeForm(id: bigint): Form<LeaseRevokeResponse> {
  return {
    simple: () => `lease ${paddedHex(id)} revoked\n`,
    fields: () => [],
    json: ({ header }) => ({ header: headerJson(header) }),
  };
}

export const keepAliveForm: Form<LeaseKeepAliveResponse> = {
  simple: ({ ID, TTL }) => `lease ${paddedHex(ID)} keepalived with TTL(${TTL})\n`,
  fields: ({ ID, TTL }, style) => [idField(ID, style), ["TTL", TTL]],
  json: ({ header, ID, TTL }) => withHeader(header, { ID, TTL }),
  protobuf: headerBytes,
};

/** @param withKeys whether the keys were asked for */
export function timeToLiveForm(withKeys: boolean): Form<LeaseTimeToLiveResponse> {
  return {
    simple({ ID, TTL, grantedTTL, keys }) {
      if (grantedTTL === 0 && TTL === -1) return `lease ${paddedHex(ID)} already expired\n`;
      const attached = withKeys
        ? `, attached keys([${keys.map((key) => toLatin1(key)).join(" ")}])`
        : "";
      return fromLatin1(
        `lease ${paddedHex(ID)} granted with TTL(${grantedTTL}s), remaining(${TTL}s)${attached}\n`,
      );
    },
    fields: ({ ID, TTL, grantedTTL, keys }, style) => [
      idField(ID, style),
      ["TTL", TTL],
      ["GrantedTTL", grantedTTL],
      ...keys.map((key): FieldLine => ["Key", quoteBytes(key)]),
    ],
    json: ({ header, ID, TTL, grantedTTL, keys }) =>
      withHeader(header, {
        id: ID,
        ttl: TTL,
        "granted-ttl": grantedTTL,
        keys: keys.length === 0 ? null : keys,
      }),
    protobuf: headerBytes,
  };
}

export const leasesForm: Form<LeaseLeasesResponse> = {
  simple: ({ leases }) =>
    [`found ${leases.length} leases`, ...leases.map(({ ID }) => paddedHex(ID))]
      .map((line) => `${line}\n`)
      .join(""),
  fields: ({ leases }, style) => leases.map(({ ID }) => idField(ID, style)),
  json: ({ header, leases }) =>
    withHeader(header, { leases: leases.map(({ ID }) => ({ id: ID })) }),
  protobuf: headerBytes,
};

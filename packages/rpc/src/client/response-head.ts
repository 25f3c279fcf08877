/**
 * The header blocks of a response as a client reads them: HTTP status, gRPC status and text, and
 * Go's texts for responses that are not gRPC's (grpc-go: internal/transport/http_util.go).
 */
import { fromLatin1, GrpcCode, toUtf8 } from "@quorate/proto";
import type { HeaderField } from "../hpack/header-field.ts";
import type { Status } from "../service.ts";

/** The fields of one header block that mean something to a call. */
export interface GrpcResponseFields {
  readonly httpStatus: string | undefined;
  readonly contentType: string | undefined;
  readonly encoding: string | undefined;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
}

/** Reads the fields of a block; the last one of a name counts. */
export function responseFields(fields: readonly HeaderField[]): GrpcResponseFields {
  let httpStatus: string | undefined;
  let contentType: string | undefined;
  let encoding: string | undefined;
  let grpcStatus: string | undefined;
  let grpcMessage: string | undefined;
  for (const { name, value } of fields) {
    if (name === "grpc-status") grpcStatus = value;
    else if (name === "grpc-message") grpcMessage = value;
    else if (name === ":status") httpStatus = value;
    else if (name === "content-type") contentType = value;
    else if (name === "grpc-encoding") encoding = value;
  }
  return { httpStatus, contentType, encoding, grpcStatus, grpcMessage };
}

/** gRPC's codes for HTTP statuses (grpc/grpc, doc/http-grpc-status-mapping.md). */
const BY_HTTP_STATUS: Readonly<Record<string, number>> = {
  400: GrpcCode.Internal,
  401: GrpcCode.Unauthenticated,
  403: GrpcCode.PermissionDenied,
  404: GrpcCode.Unimplemented,
  429: GrpcCode.Unavailable,
  502: GrpcCode.Unavailable,
  503: GrpcCode.Unavailable,
  504: GrpcCode.Unavailable,
};

/** The status of a response that is not gRPC's; undefined if it may be. */
export function refusedHead(fields: GrpcResponseFields): Status | undefined {
  const { httpStatus, contentType, encoding } = fields;
  if (fields.grpcStatus !== undefined) return undefined;
  if (httpStatus !== "200") {
    const shown = (httpStatus ?? "none").slice(0, 16);
    return {
      code: BY_HTTP_STATUS[shown] ?? GrpcCode.Unknown,
      message: `unexpected HTTP status code received from server: ${shown}`,
    };
  }
  if (contentType?.startsWith("application/grpc") !== true) {
    const shown = JSON.stringify((contentType ?? "").slice(0, 100));
    return {
      code: GrpcCode.Unknown,
      message: `received a response of unexpected content-type ${shown}`,
    };
  }
  if (encoding !== undefined && encoding !== "identity") {
    const shown = encoding.slice(0, 100);
    return {
      code: GrpcCode.Unimplemented,
      message: `grpc: Decompressor is not installed for grpc-encoding "${shown}"`,
    };
  }
  return undefined;
}

/** The status in trailers. A code that gRPC does not know is UNKNOWN, a missing one INTERNAL. */
export function statusOf({ grpcStatus, grpcMessage }: GrpcResponseFields): Status {
  const message = decodeGrpcMessage(grpcMessage ?? "");
  if (grpcStatus === undefined) {
    return {
      code: GrpcCode.Internal,
      message: "server closed the stream without sending trailers",
    };
  }
  const isKnown = /^(?:\d|1[0-6])$/.test(grpcStatus);
  return { code: isKnown ? Number(grpcStatus) : GrpcCode.Unknown, message };
}

/** The text of grpc-message: percent-encoded UTF-8. What is not well formed stays as it is. */
export function decodeGrpcMessage(text: string): string {
  if (!text.includes("%")) return text;
  const bytes = fromLatin1(
    text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  );
  return toUtf8(bytes);
}

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["m", 1],
  ["S", 1000],
  ["M", 60_000],
  ["H", 3_600_000],
];

/** A time span as a grpc-timeout value: at most eight digits, rounded up. */
export function encodeTimeout(timeoutMs: number): string {
  for (const [unit, ms] of UNITS) {
    const count = Math.max(1, Math.ceil(timeoutMs / ms));
    if (count < 100_000_000) return `${count}${unit}`;
  }
  return "99999999H";
}

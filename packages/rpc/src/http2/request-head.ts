/**
 * A request's parsed header fields (RFC 9113 sections 8.2 and 8.3). Repeated header blocks share
 * one: see HeadCache in connection.ts.
 */
import { type HeaderField, NameId } from "../hpack/header-field.ts";

/** Immutable, and shared by many requests. */
export interface RequestHead {
  readonly method: string;
  readonly scheme: string;
  /** Undefined if the request has none. */
  readonly authority: string | undefined;
  /** The :path field; its memo belongs to the gRPC layer. */
  readonly path: HeaderField;
  /** All fields in order, pseudo-header fields first. */
  readonly fields: readonly HeaderField[];
  readonly contentType: string | undefined;
  /** The body's length by content-length; -1 if not given. */
  readonly contentLength: number;
  readonly grpcTimeout: string | undefined;
  readonly grpcEncoding: string | undefined;
}

/** The rule that a request breaks: it is malformed, and its stream is reset. */
export type MalformedHead = string;

/** The head with these fields, or the problem with them. */
export function parseRequestHead(fields: readonly HeaderField[]): RequestHead | MalformedHead {
  let method: string | undefined;
  let scheme: string | undefined;
  let authority: string | undefined;
  let path: HeaderField | undefined;
  let contentType: string | undefined;
  let contentLength = -1;
  let grpcTimeout: string | undefined;
  let grpcEncoding: string | undefined;
  let regular = false;
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i];
    if (!field.cleanValue) return "a field's value holds a line break or NUL";
    switch (field.nameId) {
      case NameId.Method:
        if (method !== undefined || regular) return misplaced(field, regular);
        method = field.value;
        continue;
      case NameId.Scheme:
        if (scheme !== undefined || regular) return misplaced(field, regular);
        scheme = field.value;
        continue;
      case NameId.Authority:
        if (authority !== undefined || regular) return misplaced(field, regular);
        authority = field.value;
        continue;
      case NameId.Path:
        if (path !== undefined || regular) return misplaced(field, regular);
        path = field;
        continue;
      case NameId.Status:
      case NameId.OtherPseudo:
        return `${field.name} does not belong into a request`;
      case NameId.Malformed:
        return "a field's name is malformed";
      case NameId.ConnectionSpecific:
        return `${field.name} does not belong into HTTP/2`;
      case NameId.Te:
        if (field.value !== "trailers") return "te may only say trailers";
        break;
      case NameId.ContentLength: {
        const length = /^\d{1,15}$/.test(field.value) ? Number(field.value) : -1;
        if (length === -1 || (contentLength !== -1 && contentLength !== length))
          return "content-length is malformed";
        contentLength = length;
        break;
      }
      case NameId.ContentType:
        contentType = field.value;
        break;
      case NameId.GrpcTimeout:
        grpcTimeout = field.value;
        break;
      case NameId.GrpcEncoding:
        grpcEncoding = field.value;
        break;
    }
    regular = true;
  }
  if (method === undefined) return ":method is missing";
  if (scheme === undefined) return ":scheme is missing";
  if (path === undefined || path.value === "") return ":path is missing";
  return {
    method,
    scheme,
    authority,
    path,
    fields,
    contentType,
    contentLength,
    grpcTimeout,
    grpcEncoding,
  };
}

function misplaced(field: HeaderField, regular: boolean): MalformedHead {
  return regular ? `${field.name} comes behind other fields` : `${field.name} comes twice`;
}

/** The problem with the trailers of a request, or undefined. */
export function malformedTrailers(fields: readonly HeaderField[]): MalformedHead | undefined {
  for (const field of fields) {
    if (
      !field.cleanValue ||
      field.name.startsWith(":") ||
      field.nameId === NameId.Malformed ||
      field.nameId === NameId.ConnectionSpecific
    ) {
      return "the trailers are malformed";
    }
  }
  return undefined;
}

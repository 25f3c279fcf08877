/**
 * One header field, with its parsed properties. Most fields of a request are entries of the dynamic
 * table that repeat: they are parsed once, when the entry is added, and not for each request.
 */

/**
 * Numbers of the names that have a meaning in HTTP/2 or gRPC, for use in a switch; 0 is any other
 * name.
 */
export const NameId = {
  Other: 0,
  Method: 1,
  Scheme: 2,
  Authority: 3,
  Path: 4,
  Status: 5,
  OtherPseudo: 6,
  ContentType: 7,
  ContentLength: 8,
  Te: 9,
  UserAgent: 10,
  GrpcTimeout: 11,
  GrpcEncoding: 12,
  GrpcAcceptEncoding: 13,
  Host: 14,
  Cookie: 15,
  /** Connection-specific names of HTTP/1.1, which HTTP/2 forbids (RFC 9113 section 8.2.2). */
  ConnectionSpecific: 16,
  /** A name that RFC 9113 section 8.2.1 forbids. */
  Malformed: 17,
} as const;

const KNOWN: ReadonlyMap<string, number> = new Map<string, number>([
  [":method", NameId.Method],
  [":scheme", NameId.Scheme],
  [":authority", NameId.Authority],
  [":path", NameId.Path],
  [":status", NameId.Status],
  ["content-type", NameId.ContentType],
  ["content-length", NameId.ContentLength],
  ["te", NameId.Te],
  ["user-agent", NameId.UserAgent],
  ["grpc-timeout", NameId.GrpcTimeout],
  ["grpc-encoding", NameId.GrpcEncoding],
  ["grpc-accept-encoding", NameId.GrpcAcceptEncoding],
  ["host", NameId.Host],
  ["cookie", NameId.Cookie],
  ["connection", NameId.ConnectionSpecific],
  ["proxy-connection", NameId.ConnectionSpecific],
  ["keep-alive", NameId.ConnectionSpecific],
  ["transfer-encoding", NameId.ConnectionSpecific],
  ["upgrade", NameId.ConnectionSpecific],
]);

/** What a field counts beyond its characters (RFC 7541 section 4.1). */
export const FIELD_OVERHEAD_BYTES = 32;

/**
 * The NameId of a name; Malformed for what RFC 9113 section 8.2.1 forbids: capitals, control
 * characters, spaces, a colon inside.
 */
export function nameIdOf(name: string): number {
  const known = KNOWN.get(name);
  if (known !== undefined) return known;
  if (name.length === 0) return NameId.Malformed;
  const pseudo = name.charCodeAt(0) === 0x3a;
  for (let i = pseudo ? 1 : 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (code <= 0x20 || code >= 0x7f || code === 0x3a || (code >= 0x41 && code <= 0x5a))
      return NameId.Malformed;
  }
  return pseudo ? NameId.OtherPseudo : NameId.Other;
}

/**
 * False for a value that contains NUL, CR or LF, which could end it in another protocol. Spaces at
 * its ends are allowed, as in Go.
 */
function isCleanValue(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code === 0 || code === 10 || code === 13) return false;
  }
  return true;
}

export class HeaderField {
  /** As sent, one char a byte. */
  readonly name: string;
  readonly value: string;
  /** A number of NameId. */
  readonly nameId: number;
  /** False for a value that makes its message malformed. */
  readonly cleanValue: boolean;
  /** The field's size in tables and lists: its characters and 32. */
  readonly sizeBytes: number;
  /** A slot for the reader of the field to cache what it derived, such as the method for a path. */
  memo: unknown = undefined;

  constructor(name: string, value: string, nameId: number = nameIdOf(name)) {
    this.name = name;
    this.value = value;
    this.nameId = nameId;
    this.cleanValue = isCleanValue(value);
    this.sizeBytes = name.length + value.length + FIELD_OVERHEAD_BYTES;
  }
}

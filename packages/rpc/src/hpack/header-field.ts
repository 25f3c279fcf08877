/**
 * One header field, with what can be known of it once and for all. Most fields of a request are
 * entries of the dynamic table that come again and again: what is found out when an entry is made
 * need not be found out for each request.
 */

/**
 * Numbers of the names that mean something to HTTP/2 or gRPC, so that code can switch on them; 0 is
 * any other name.
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
  /** Names of HTTP/1.1's connections, which HTTP/2 forbids (RFC 9113 section 8.2.2). */
  ConnectionSpecific: 16,
  /** A name that no field may have. */
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

/** What a field costs beyond its characters (RFC 7541 section 4.1). */
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
 * False for a value with a character that could end it in another protocol: NUL, CR or LF. Spaces
 * at its ends are let through, as in Go.
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
  /** What the field counts for in tables and lists: its characters and 32. */
  readonly sizeBytes: number;
  /** A place for what the reader of the field made of it, such as the method that a path names. */
  memo: unknown = undefined;

  constructor(name: string, value: string, nameId: number = nameIdOf(name)) {
    this.name = name;
    this.value = value;
    this.nameId = nameId;
    this.cleanValue = isCleanValue(value);
    this.sizeBytes = name.length + value.length + FIELD_OVERHEAD_BYTES;
  }
}

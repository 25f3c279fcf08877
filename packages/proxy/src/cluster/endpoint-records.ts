/**
 * Proxies in the cluster's keys, as etcd's resolver for gRPC has them (etcd:
 * client/v3/naming/endpoints): PREFIX/ADDRESS, with a value in JSON.
 */
import { fromUtf8, toUtf8 } from "@quorate/proto";

/** One registered proxy. */
export interface EndpointRecord {
  readonly address: string;
  /** The host's name, from the record's metadata. */
  readonly name: string;
}

/** Longer values are not read. */
const MAX_RECORD_BYTES = 64 * 1024;

/** The key of a proxy. */
export function recordKey(prefix: string, address: string): Uint8Array {
  return fromUtf8(`${prefix}/${address}`);
}

/** The value of a proxy's key. */
export function encodeRecord({ address, name }: EndpointRecord): Uint8Array {
  const metadata = JSON.stringify({ name });
  return fromUtf8(JSON.stringify({ Op: 0, Addr: address, Metadata: metadata }));
}

/** Reads a value; undefined for what is no record. Without metadata the name is empty. */
export function decodeRecord(value: Uint8Array): EndpointRecord | undefined {
  if (value.length > MAX_RECORD_BYTES) return undefined;
  try {
    const { Addr: address, Metadata: metadata } = JSON.parse(toUtf8(value)) as {
      Addr?: unknown;
      Metadata?: unknown;
    };
    if (typeof address !== "string") return undefined;
    return { address, name: nameIn(metadata) };
  } catch {
    return undefined;
  }
}

function nameIn(metadata: unknown): string {
  try {
    const { name } = JSON.parse(String(metadata)) as { name?: unknown };
    return typeof name === "string" ? name : "";
  } catch {
    return "";
  }
}

/**
 * Signatures of requests to S3, version 4 ("Authenticating Requests: Using the Authorization
 * Header" in Amazon's reference of the S3 API).
 */
import { createHash, createHmac } from "node:crypto";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of credentials that end. */
  readonly sessionToken: string | undefined;
}

/** A request before it is signed. */
export interface S3Request {
  readonly method: string;
  /** With the path and query in their final form: each part percent-encoded once. */
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, hexadecimal. */
  readonly bodyHash: string;
}

const hmac = (key: string | Uint8Array, text: string): Buffer =>
  createHmac("sha256", key).update(text).digest();

/** SHA-256, hexadecimal. */
export const sha256Hex = (bytes: string | Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex");

/** Percent-encodes all but the unreserved characters of RFC 3986. */
export const encodePart = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** The headers to send, the signature among them. */
export function signedHeaders(
  { method, url, headers, bodyHash }: S3Request,
  { accessKeyId, secretAccessKey, sessionToken }: S3Credentials,
  region: string,
  timeMs: number,
): Record<string, string> {
  const time = new Date(timeMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    "x-amz-content-sha256": bodyHash,
    "x-amz-date": time,
  };
  if (sessionToken !== undefined) all["x-amz-security-token"] = sessionToken;
  const names = Object.keys(all).sort();
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`)
    .sort()
    .join("&");
  const canonical = [
    method,
    url.pathname,
    query,
    ...names.map((name) => `${name}:${all[name]?.trim()}`),
    "",
    names.join(";"),
    bodyHash,
  ].join("\n");
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256Hex(canonical)].join("\n");
  const dateKey = hmac(`AWS4${secretAccessKey}`, time.slice(0, 8));
  const key = hmac(hmac(hmac(dateKey, region), "s3"), "aws4_request");
  const signature = hmac(key, text).toString("hex");
  all["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, ` +
    `SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return all;
}

/**
 * Objects in a bucket of an S3-compatible store.
 *
 * An object of up to 16 MiB is one PUT, a larger one a multipart upload of parts that are held in
 * memory one at a time. Each request carries the SHA-256 of its body, by which the store refuses
 * what was changed on the way; the SHA-256 of the whole object is kept with it and compared when it
 * is read. A request that fails for a reason that can pass is repeated; a read goes on where it
 * broke.
 */
import { createHash } from "node:crypto";
import { Backoff, type Clock, type Random, sleep, tlsContext } from "@quorate/host";
import { ChunkQueue, defined, fromUtf8, toUtf8 } from "@quorate/proto";
import { Agent, type Dispatcher, request } from "undici";
import {
  type Content,
  collect,
  type ObjectStore,
  ObjectStoreError,
  type StoredObject,
} from "../src/object-store.ts";
import { encodePart, type S3Credentials, sha256Hex, signedHeaders } from "./s3-signature.ts";

/** A part of a multipart upload, and the largest object of a single request. */
export const PART_BYTES = 16 * 1024 * 1024;
/** S3's limit. */
const MAX_PARTS = 10_000;
const MAX_ATTEMPTS = 6;
const TIMEOUT_MS = 30_000;
/** A list of 1,000 objects with names of 1,024 bytes, and what stands around them. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);
/** Refusals that another attempt may not get. */
const RETRIED_CODES = new Set(["RequestTimeout", "SlowDown", "InternalError", "BadDigest"]);
const HASH_HEADER = "x-amz-meta-sha256";
const HASH_OF_NOTHING = sha256Hex("");

export interface S3Options {
  /** Such as https://s3.eu-central-1.amazonaws.com. */
  readonly endpoint: URL;
  readonly region: string;
  readonly bucket: string;
  /** Before the name of each object; "" or with a slash at its end. */
  readonly prefix: string;
  /** The bucket stands in the path and not in the name of the host. */
  readonly isPathStyle: boolean;
  /** Certificates to trust in place of Node's, PEM. */
  readonly ca?: string | undefined;
  /** For how long nobody can remove an object; needs a bucket with object lock. */
  readonly lock?: { readonly mode: "GOVERNANCE" | "COMPLIANCE"; readonly ms: number } | undefined;
}

export interface S3Deps {
  readonly clock: Clock;
  readonly random: Random;
  /** Asked for each request, so that credentials can be replaced. Rejects with Error. */
  credentials(): Promise<S3Credentials>;
}

interface Query {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** The object; "" for the bucket. */
  readonly name: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
}

interface Body {
  readonly bytes: Uint8Array;
  readonly sha256: Buffer;
}

export class S3Store implements ObjectStore {
  readonly place: string;
  readonly #options: S3Options;
  readonly #deps: S3Deps;
  readonly #agent: Agent;
  readonly #base: string;

  constructor(options: S3Options, deps: S3Deps) {
    const { endpoint, bucket, prefix, isPathStyle, ca } = options;
    this.#options = options;
    this.#deps = deps;
    this.place = `s3://${bucket}/${prefix}`;
    this.#agent = new Agent({
      connections: 4,
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      connect: { timeout: TIMEOUT_MS, ...tlsContext({ trusted: ca }) },
    });
    const path = endpoint.pathname.replace(/\/$/, "");
    this.#base = isPathStyle
      ? `${endpoint.protocol}//${endpoint.host}${path}/${encodePart(bucket)}`
      : `${endpoint.protocol}//${bucket}.${endpoint.host}${path}`;
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async list(): Promise<StoredObject[]> {
    const { prefix } = this.#options;
    const found: StoredObject[] = [];
    let token: string | undefined;
    do {
      const query: Record<string, string> = { "list-type": "2", prefix };
      if (token !== undefined) query["continuation-token"] = token;
      const xml = await this.#text({ method: "GET", name: "", query });
      for (const entry of elements(xml, "Contents")) {
        const key = elements(entry, "Key")[0];
        const size = Number(elements(entry, "Size")[0]);
        if (key?.startsWith(prefix) !== true || !Number.isSafeInteger(size))
          throw new ObjectStoreError("Damaged", this.place, "its list of objects is none");
        // Some stores show a directory as an object.
        if (!key.endsWith("/")) found.push({ name: key.slice(prefix.length), sizeBytes: size });
      }
      token = elements(xml, "NextContinuationToken")[0];
    } while (token !== undefined);
    return found;
  }

  async put(name: string, sizeBytes: number, content: Content): Promise<void> {
    if (sizeBytes > PART_BYTES) return this.#putParts(name, sizeBytes, content);
    const bytes = await collect(content(), sizeBytes);
    const body = bodyOf(defined(bytes, "content of the size that was given"));
    const headers = { ...this.#objectHeaders(body.sha256), ...checksum(body) };
    await this.#text({ method: "PUT", name, headers, body });
  }

  /** What is kept with an object. @param sha256 of all of it */
  #objectHeaders(sha256: Buffer): Record<string, string> {
    const { lock } = this.#options;
    const hash = { [HASH_HEADER]: sha256.toString("hex") };
    if (lock === undefined) return hash;
    const until = new Date(this.#deps.clock.wallMs() + lock.ms);
    return {
      ...hash,
      "x-amz-object-lock-mode": lock.mode,
      "x-amz-object-lock-retain-until-date": until.toISOString(),
    };
  }

  async #putParts(name: string, sizeBytes: number, content: Content): Promise<void> {
    const hash = createHash("sha256");
    for await (const chunk of content()) hash.update(chunk);
    const headers = this.#objectHeaders(hash.digest());
    const begun = await this.#text({
      method: "POST",
      name,
      query: { uploads: "" },
      headers: { ...headers, "x-amz-checksum-algorithm": "SHA256" },
    });
    const uploadId = elements(begun, "UploadId")[0];
    if (uploadId === undefined)
      throw new ObjectStoreError("Damaged", this.#full(name), "the upload has no id");
    try {
      const partBytes = Math.max(PART_BYTES, Math.ceil(sizeBytes / MAX_PARTS));
      const parts: string[] = [];
      for await (const part of inParts(content(), partBytes)) {
        const body = bodyOf(part);
        const partNumber = String(parts.length + 1);
        const query = { partNumber, uploadId };
        const hashes = checksum(body);
        const { etag } = await this.#send({ method: "PUT", name, query, headers: hashes, body });
        parts.push(
          `<Part><PartNumber>${partNumber}</PartNumber><ETag>${escapeXml(etag)}</ETag>` +
            `<ChecksumSHA256>${hashes["x-amz-checksum-sha256"]}</ChecksumSHA256></Part>`,
        );
      }
      const xml = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join("")}</CompleteMultipartUpload>`;
      await this.#text({ method: "POST", name, query: { uploadId }, body: bodyOf(fromUtf8(xml)) });
    } catch (error) {
      // Parts that nobody completes cost space; a rule of the bucket removes what this leaves.
      await this.#text({ method: "DELETE", name, query: { uploadId } }).catch(() => {});
      throw error;
    }
  }

  async *get(name: string): AsyncGenerator<Uint8Array> {
    const { clock, random } = this.#deps;
    const backoff = new Backoff({ firstMs: 200, mostMs: 5000 }, random);
    const hash = createHash("sha256");
    let at = 0;
    let etag: string | undefined;
    for (let attempt = 1; ; attempt++) {
      const headers: Record<string, string> = {};
      if (etag !== undefined) {
        headers["range"] = `bytes=${at}-`;
        headers["if-match"] = etag;
      }
      const response = await this.#open({ method: "GET", name, headers });
      if (etag !== undefined && response.statusCode !== 206) {
        response.body.destroy();
        const problem = "the store cannot go on with a read that broke";
        throw new ObjectStoreError("Refused", this.#full(name), problem);
      }
      etag ??= headerOf(response, "etag");
      const size = at + Number(response.headers["content-length"]);
      try {
        for await (const chunk of response.body) {
          hash.update(chunk);
          at += chunk.length;
          attempt = 1;
          yield chunk;
        }
      } catch (error) {
        if (attempt >= MAX_ATTEMPTS) throw this.#unavailable(name, error);
        await sleep(clock, backoff.nextMs());
        if (at < size) continue;
      }
      const wanted = response.headers[HASH_HEADER];
      if (at !== size || (wanted !== undefined && wanted !== hash.digest("hex")))
        throw new ObjectStoreError("Damaged", this.#full(name), "it is not what was uploaded");
      return;
    }
  }

  async remove(name: string): Promise<void> {
    await this.#text({ method: "DELETE", name });
  }

  /** Sends a request and reads its response, a text. */
  async #text(query: Query): Promise<string> {
    return (await this.#send(query)).text;
  }

  /** Sends a request until it succeeds, is refused, or has failed too often. */
  async #send(query: Query): Promise<{ text: string; etag: string }> {
    return this.#attempts(query, async (response) => {
      const text = await this.#readText(query, response);
      // A completed upload can fail after its status was sent.
      const code = text.includes("<Error>") ? elements(text, "Code")[0] : undefined;
      if (code !== undefined) throw this.#failure(query, 500, text);
      return { text, etag: headerOf(response, "etag") };
    });
  }

  /** As #send, with the body unread. */
  #open(query: Query): Promise<Dispatcher.ResponseData> {
    return this.#attempts(query, async (response) => response);
  }

  async #attempts<T>(
    query: Query,
    read: (response: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    const { clock, random } = this.#deps;
    const backoff = new Backoff({ firstMs: 200, mostMs: 5000 }, random);
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.#request(query);
        const { statusCode } = response;
        if (statusCode >= 200 && statusCode < 300) return await read(response);
        throw this.#failure(query, statusCode, await this.#readText(query, response));
      } catch (error) {
        const failure =
          error instanceof ObjectStoreError ? error : this.#unavailable(query.name, error);
        if (failure.code !== "Unavailable" || attempt >= MAX_ATTEMPTS) throw failure;
      }
      await sleep(clock, backoff.nextMs());
    }
  }

  async #request({ method, name, query = {}, headers = {}, body }: Query) {
    const { region, prefix } = this.#options;
    const key = name === "" ? "" : `${prefix}${name}`;
    const url = new URL(`${this.#base}/${key.split("/").map(encodePart).join("/")}`);
    url.search = Object.entries(query)
      .map(([one, value]) => `${encodePart(one)}=${encodePart(value)}`)
      .join("&");
    const bodyHash = body?.sha256.toString("hex") ?? HASH_OF_NOTHING;
    let credentials: S3Credentials;
    try {
      credentials = await this.#deps.credentials();
    } catch (error) {
      throw new ObjectStoreError("Refused", this.place, (error as Error).message);
    }
    const timeMs = this.#deps.clock.wallMs();
    const signed = signedHeaders({ method, url, headers, bodyHash }, credentials, region, timeMs);
    return request(url, {
      method,
      headers: signed,
      dispatcher: this.#agent,
      ...(body === undefined ? {} : { body: body.bytes }),
    });
  }

  async #readText({ name }: Query, { body }: Dispatcher.ResponseData): Promise<string> {
    const bytes = await collect(body, MAX_TEXT_BYTES);
    if (bytes !== undefined) return toUtf8(bytes);
    throw new ObjectStoreError("Damaged", this.#full(name), "a response is too large");
  }

  #failure({ method, name }: Query, status: number, text: string): ObjectStoreError {
    const code = elements(text, "Code")[0] ?? "";
    const message = elements(text, "Message")[0] ?? "";
    const details = [`${method} got ${status}`, code, message].filter((one) => one !== "");
    const kind =
      RETRIED.has(status) || RETRIED_CODES.has(code)
        ? "Unavailable"
        : code === "NoSuchKey"
          ? "Missing"
          : "Refused";
    return new ObjectStoreError(kind, this.#full(name), details.join(": ").slice(0, 500));
  }

  #unavailable(name: string, error: unknown): ObjectStoreError {
    const { message, code } = error as { message?: string; code?: string };
    const problem = message || code || String(error);
    return new ObjectStoreError("Unavailable", this.#full(name), problem);
  }

  #full(name: string): string {
    return `${this.place}${name}`;
  }
}

/** A body with its hash, which the signature, the store and the object's own hash share. */
const bodyOf = (bytes: Uint8Array): Body => ({
  bytes,
  sha256: createHash("sha256").update(bytes).digest(),
});

const checksum = ({ sha256 }: Body) => ({ "x-amz-checksum-sha256": sha256.toString("base64") });

function headerOf({ headers }: Dispatcher.ResponseData, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}

/** The content in parts of that size; the last one may be shorter. */
async function* inParts(
  content: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Uint8Array> {
  const held = new ChunkQueue();
  for await (const chunk of content) {
    held.push(chunk);
    while (held.sizeBytes >= partBytes) yield held.take(partBytes);
  }
  if (held.sizeBytes > 0) yield held.take(held.sizeBytes);
}

/** The contents of all elements of a name that have no attributes, in order. Linear. */
export function elements(xml: string, name: string): string[] {
  const [open, close] = [`<${name}>`, `</${name}>`];
  const found: string[] = [];
  for (let at = 0; ; ) {
    const start = xml.indexOf(open, at);
    const end = start === -1 ? -1 : xml.indexOf(close, start);
    if (end === -1) return found;
    found.push(unescapeXml(xml.slice(start + open.length, end)));
    at = end + close.length;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};

const unescapeXml = (text: string): string =>
  text.includes("<")
    ? text
    : text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? "");

const escapeXml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** A request to a peer up to the point where the peer has agreed to it, or not. */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { idToHex } from "@quorate/proto";
import { DialError } from "./dial.ts";
import {
  CLUSTER_ID_ADVICE,
  RefusalText,
  remoteClusterId,
  remoteVersion,
  requestHeaders,
} from "./headers.ts";
import type { Shared } from "./options.ts";

/** More of an error's text is not read. */
const MAX_ERROR_BYTES = 1024;

/** What a peer answered. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body's beginning for an error, empty otherwise. */
  readonly text: string;
}

/**
 * Sends the headers of a request; the body is the caller's to write. Errors show as the stream's
 * close.
 */
export function openStream(
  shared: Shared,
  session: ClientHttp2Session,
  to: bigint,
  path: string,
): ClientHttp2Stream {
  const stream = session.request(requestHeaders(shared.options, to, path), { endStream: false });
  stream.on("error", () => {});
  return stream;
}

/**
 * The answer's status, and its text if it is an error. Rejects with DialError if the stream ends
 * without one.
 * @param readsBody false if the body of a good answer is the caller's to read
 */
export function answerTo(stream: ClientHttp2Stream, readsBody = true): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let answer: { status: number; headers: IncomingHttpHeaders } | undefined;
    let text = "";
    stream.on("response", (headers) => {
      const status = headers[":status"] ?? 0;
      answer = { status, headers };
      if (status < 300) resolve({ status, headers, text });
      if (status >= 300 || readsBody) stream.on("data", take);
    });
    const take = (chunk: Buffer) => {
      if (text.length < MAX_ERROR_BYTES)
        text += chunk.toString("utf8", 0, MAX_ERROR_BYTES - text.length);
    };
    // The answer may be complete while the request is not.
    const complete = () => {
      if (answer === undefined)
        reject(new DialError("Failed", "connection closed before the peer answered"));
      else resolve({ ...answer, text: text.trimEnd() });
    };
    stream.on("end", complete);
    stream.on("close", complete);
  });
}

/**
 * The answer to a request over HTTP/1.1, whose body is the caller's to write. Rejects with Node's
 * error, or what the request is destroyed with.
 */
export function answerToHttp1(request: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      textOf(response).then((text) => resolve({ status, headers, text }), reject);
    });
  });
}

/** The beginning of an answer's body, as a text. */
export async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response as AsyncIterable<Buffer>) {
    text += chunk.toString("utf8", 0, MAX_ERROR_BYTES - text.length);
    if (text.length >= MAX_ERROR_BYTES) break;
  }
  return text.trimEnd();
}

/** Why a peer said no, as an error. */
export function refusedBy(shared: Shared, answer: Answer): DialError {
  const { options } = shared;
  if (answer.status === 410) {
    shared.selfRemoved();
    return new DialError("Removed", "the member has been permanently removed from the cluster");
  }
  if (answer.text === RefusalText.clusterId) {
    return new DialError(
      "Refused",
      answer.text,
      "request sent was ignored by remote peer due to cluster ID mismatch",
      {
        "remote-peer-cluster-id": remoteClusterId(answer.headers),
        "local-member-cluster-id": idToHex(options.clusterId),
        advice: CLUSTER_ID_ADVICE,
      },
    );
  }
  if (answer.text === RefusalText.version) {
    return new DialError(
      "Refused",
      answer.text,
      "request sent was ignored by remote peer due to server version incompatibility",
      {
        "remote-peer-server-version": remoteVersion(answer.headers),
        "local-member-server-version": options.serverVersion,
      },
    );
  }
  return new DialError(
    "Refused",
    answer.text === "" ? `unexpected http status ${answer.status}` : answer.text,
  );
}

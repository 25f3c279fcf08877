/** Sends a request of the comparison over HTTP/1.1, and what comes back. */
import { type Agent, request as httpRequest, type IncomingMessage } from "node:http";
import type { GatewayRequest } from "./request.ts";

/** What was sent back. */
export interface GatewayResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** As UTF-8. */
  readonly body: string;
  /** How it ended; "open": it had not after a while without bytes, as streams do. */
  readonly end: "end" | "open" | "cut";
}

/** The headers that are compared. */
const HEADERS: readonly string[] = [
  "content-type",
  "grpc-metadata-content-type",
  "www-authenticate",
  "location",
  "access-control-allow-origin",
  "access-control-allow-methods",
  "access-control-allow-headers",
  "x-content-type-options",
  "trailer",
];

/** When a response that stays open has all that is waited for. */
export interface Patience {
  /** After so long without bytes. */
  readonly quietMs: number;
  /** At once when the body is what is expected. */
  readonly isWhole: (body: string) => boolean;
}

/** Sends one request. */
export function send(
  address: string,
  agent: Agent,
  { method, path, headers, body }: GatewayRequest,
  patience: Patience,
): Promise<GatewayResponse> {
  const [host, port] = address.split(":");
  const bytes = Buffer.from(body, "latin1");
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      host,
      port,
      method,
      path,
      agent,
      headers: { ...headers, "content-length": String(bytes.length) },
    });
    const nothing = setTimeout(() => {
      resolve({ status: 0, headers: {}, body: "", end: "open" });
      request.destroy();
    }, patience.quietMs * 4);
    request.on("error", (error) => {
      clearTimeout(nothing);
      reject(error);
    });
    request.on("response", (response) => {
      clearTimeout(nothing);
      collect(response, patience).then((rest) => {
        if (rest.end === "open") request.destroy();
        resolve({ status: response.statusCode!, headers: shownHeaders(response), ...rest });
      }, reject);
    });
    request.end(bytes);
  });
}

function shownHeaders(response: IncomingMessage): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const name of HEADERS) {
    const value = response.headers[name];
    if (value !== undefined) shown[name] = String(value);
  }
  return shown;
}

function collect(
  response: IncomingMessage,
  { quietMs, isWhole }: Patience,
): Promise<Pick<GatewayResponse, "body" | "end">> {
  const pieces: Buffer[] = [];
  return new Promise((resolve) => {
    const done = (end: GatewayResponse["end"]): void => {
      clearTimeout(timer);
      resolve({ body: Buffer.concat(pieces).toString(), end });
    };
    let timer = setTimeout(() => done("open"), quietMs);
    response.on("data", (piece: Buffer) => {
      pieces.push(piece);
      clearTimeout(timer);
      timer = setTimeout(() => done("open"), quietMs);
      if (isWhole(Buffer.concat(pieces).toString())) done("open");
    });
    response.on("end", () => done("end"));
    response.on("error", () => done("cut"));
  });
}

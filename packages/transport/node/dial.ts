/**
 * Connecting to a peer: a socket, TLS and its checks, and what speaks HTTP/2 over it: a stream of
 * messages its own frames (stream.ts), a snapshot a session of Node's. Either is watched for as
 * long as it lives.
 */
import type { ClientHttp2Session, SecureClientSessionOptions } from "node:http2";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import type { LogFields, Timer } from "@quorate/host";
import {
  clientTlsOptions,
  handshakeFailure,
  refuseCertificate,
  type TlsOptions,
} from "@quorate/host/node";
import { CodedError } from "@quorate/proto";
import type { Shared } from "./options.ts";

/** The ways in which dialling a peer fails. "Etcd": it speaks etcd's peer protocol. */
export type DialErrorCode = "Refused" | "Failed" | "Timeout" | "Stopped" | "Removed" | "Etcd";

/** The reason why a peer could not be reached. */
export class DialError extends CodedError<DialErrorCode> {
  /** What a log says of it, and in which fields; the message goes into the field "error". */
  readonly headline: string;
  readonly fields: LogFields;
  constructor(
    code: DialErrorCode,
    message: string,
    headline = "failed to dial remote peer",
    fields: LogFields = {},
  ) {
    super("DialError", code, message);
    this.headline = headline;
    this.fields = fields;
  }
}

/** Frames as long as this let a big batch pass in few pieces. */
const MAX_FRAME_BYTES = 256 * 1024;
const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
/**
 * Node counts what waits to be sent among a session's memory, in MiB; our own bounds come first.
 */
const SESSION_MEMORY_MIB = 256;

/**
 * Streams that the other side may have open on one connection: a peer needs one, someone who asks
 * after members a few.
 */
const MAX_STREAMS = 64;

/** HTTP/2 settings of both sides of a peer connection. */
export const SESSION_OPTIONS: SecureClientSessionOptions = {
  maxSessionMemory: SESSION_MEMORY_MIB,
  settings: {
    enablePush: false,
    maxConcurrentStreams: MAX_STREAMS,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxFrameSize: MAX_FRAME_BYTES,
  },
};

/** Opens the window of a whole session to what one is for. */
export function widenSession(session: { setLocalWindowSize(size: number): void }): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
}

/** A session that was dialled, with its socket. */
export interface Link {
  readonly session: ClientHttp2Session;
  readonly socket: Socket;
}

/** A dial in progress. */
export interface Dial<T> {
  /** Rejects with DialError. */
  readonly link: Promise<T>;
  /** Gives up; `link` rejects. Does nothing once it is settled. */
  stop(): void;
}

/** The parts of a peer URL. */
export interface PeerTarget {
  readonly secure: boolean;
  /** The name that the peer's certificate must have. */
  readonly host: string;
  readonly port: number;
  /** The file of a unix socket; undefined for TCP. */
  readonly path: string | undefined;
}

/**
 * The parts of "http://host:port", "https://host:port", "unix://path" or "unixs://path", or
 * undefined for anything else. A unix socket's host is what precedes the first colon or slash of
 * its path ("unixs://member1:1" is the file "member1:1"), as in etcd, or "localhost".
 */
export function parsePeerUrl(url: string): PeerTarget | undefined {
  const match = /^(https?):\/\/(?:\[([0-9a-fA-F:.]+)\]|([^/:?#\s]+)):(\d{1,5})\/?$/.exec(url);
  if (match !== null) {
    const host = match[2] ?? match[3] ?? "";
    return { secure: match[1] === "https", host, port: Number(match[4]), path: undefined };
  }
  const unix = /^(unixs?):(?:\/\/)?([^:/?#]*)((?:[:/][^?#]*)?)$/.exec(url);
  const [, scheme, name = "", rest = ""] = unix ?? [];
  const path = name + rest;
  if (path === "") return undefined;
  return { secure: scheme === "unixs", host: name || "localhost", port: 0, path };
}

/** Opens a session to `url` within `timeoutMs`. */
export function dial(shared: Shared, url: string, timeoutMs: number): Dial<Link> {
  const { link, stop } = dialSocket(shared, url, timeoutMs);
  const toSession = (socket: Socket): Link => {
    // A unix socket's URL is none to Node; the session has its socket, so any authority will do.
    const authority = parsePeerUrl(url)?.path === undefined ? url : "http://localhost";
    // Loaded here: it takes ten milliseconds, and a member without others needs none.
    const { connect } = process.getBuiltinModule("node:http2");
    const session = connect(authority, { ...SESSION_OPTIONS, createConnection: () => socket });
    // Its close says all we need.
    session.on("error", () => {});
    session.once("connect", () => {
      if (!session.destroyed) widenSession(session);
    });
    return { session, socket };
  };
  return { link: link.then(toSession), stop };
}

/**
 * Opens a connection to `url`, for HTTP/2, within `timeoutMs`. Errors show as the socket's close
 * from then on.
 */
export function dialSocket(shared: Shared, url: string, timeoutMs: number): Dial<Socket> {
  let giveUp: () => void = () => {};
  const link = new Promise<Socket>((resolve, reject) => {
    const target = parsePeerUrl(url);
    if (target === undefined) throw new DialError("Failed", `not a peer URL: ${url}`);
    const tls = target.secure ? shared.options.tls?.current : undefined;
    if (target.secure && tls === undefined)
      throw new DialError("Failed", `dial ${url}: no TLS options`);
    const socket = openSocket(target, tls, shared.options.localAddress);
    const timer: Timer = shared.clock.after(timeoutMs, () =>
      fail(new DialError("Timeout", `dial ${url}: i/o timeout`)),
    );
    const fail = (error: DialError) => {
      timer.cancel();
      socket.destroy();
      reject(error);
    };
    giveUp = () => fail(new DialError("Stopped", `dial ${url}: stopped`));
    socket.on("error", (error: Error) => {
      const reason = socket instanceof TLSSocket ? handshakeFailure(error, socket) : error.message;
      fail(new DialError("Failed", `dial ${url}: ${reason}`));
    });
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      const refusal = tls === undefined ? undefined : refuseServer(tls, socket as TLSSocket);
      if (refusal !== undefined) {
        fail(new DialError("Refused", `dial ${url}: ${refusal}`));
        return;
      }
      timer.cancel();
      resolve(socket);
    });
  });
  return { link, stop: () => giveUp() };
}

function openSocket(
  { host, port, path }: PeerTarget,
  tls: TlsOptions | undefined,
  localAddress: string | undefined,
): Socket {
  const where =
    path === undefined
      ? { host, port, localAddress, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }
      : { path };
  return tls === undefined
    ? connectPlain(where)
    : connectTls({ ...clientTlsOptions(tls, host, ["h2"]), ...where });
}

/**
 * Why a server is not taken although TLS has nothing against it. Allowed names bind both sides, as
 * in etcd.
 */
function refuseServer(tls: TlsOptions, socket: TLSSocket): string | undefined {
  if (socket.alpnProtocol !== "h2") return "peer does not speak HTTP/2";
  return refuseCertificate(tls, socket.getPeerX509Certificate(), true);
}

/** What watching a link needs of it. */
export interface Watched {
  readonly socket: Socket;
  readonly isGone: () => boolean;
  /** Sends a ping; `answered` is called when its answer comes. */
  readonly ping: (answered: () => void) => void;
  readonly giveUp: (error: DialError) => void;
}

/** How an HTTP/2 session is watched. */
export function watchedSession({ session, socket }: Link): Watched {
  return {
    socket,
    isGone: () => session.destroyed,
    ping: (answered) => {
      session.ping((error) => {
        if (!error) answered();
      });
    },
    giveUp: (error) => session.destroy(error),
  };
}

/**
 * Pings a link every now and then for as long as its socket lives, reports the round-trip times,
 * and closes it when nothing at all has come in for the timeout after a ping. Data counts as an
 * answer: behind a big batch a ping may be late.
 */
export function watchLink(
  shared: Shared,
  { socket, isGone, ping, giveUp }: Watched,
  onRoundTrip: (ms: number) => void,
): void {
  const { clock } = shared;
  let waitingSinceMs: number | undefined;
  let seenBytes = 0;
  const look = () => {
    if (isGone()) return;
    const nowMs = clock.monotonicMs();
    if (waitingSinceMs !== undefined) {
      if (socket.bytesRead !== seenBytes) {
        seenBytes = socket.bytesRead;
        waitingSinceMs = nowMs;
      } else if (nowMs - waitingSinceMs >= shared.options.pingTimeoutMs)
        giveUp(new DialError("Timeout", "peer does not answer"));
      return;
    }
    waitingSinceMs = nowMs;
    seenBytes = socket.bytesRead;
    ping(() => {
      if (waitingSinceMs === undefined) return;
      waitingSinceMs = undefined;
      onRoundTrip(clock.monotonicMs() - nowMs);
    });
  };
  const timer = clock.every(shared.options.pingIntervalMs, look);
  socket.on("close", () => timer.cancel());
  look();
}

/**
 * TLS credentials for grpc-js's channels. grpc-js sends the host as SNI even where it is an IP
 * address, which TLS does not allow and Node 26 refuses. These send SNI only for host names, and
 * check addresses against the certificate all the same.
 */
import { isIP, type Socket } from "node:net";
import { createSecureContext, type SecureContextOptions, connect as tlsConnect } from "node:tls";
import {
  type CallCredentials,
  ChannelCredentials,
  type ChannelOptions,
  credentials,
} from "@grpc/grpc-js";

type GrpcUri = Parameters<ChannelCredentials["_createSecureConnector"]>[0];
type SecureConnector = ReturnType<ChannelCredentials["_createSecureConnector"]>;
type SecureConnectResult = Awaited<ReturnType<SecureConnector["connect"]>>;

type SecureContext = ReturnType<typeof createSecureContext>;

/** Loads certificates and keys. Throws if they cannot be read. */
export function tlsContext(options: SecureContextOptions): SecureContext {
  return createSecureContext({ ...options, minVersion: "TLSv1.2" });
}

/** The credentials of one link; the link closes them. */
export class TlsCredentials extends ChannelCredentials {
  readonly #context: SecureContext;
  readonly #verifies: boolean;
  readonly #serverName: string | undefined;

  /** Sockets with a handshake in progress. */
  readonly #handshakes = new Set<Socket>();
  #isClosed = false;

  constructor(
    context: SecureContext,
    how: { readonly insecureSkipVerify?: boolean; readonly serverName?: string },
  ) {
    super();
    this.#context = context;
    this.#verifies = how.insecureSkipVerify !== true;
    this.#serverName = how.serverName;
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(
    target: GrpcUri,
    _options: ChannelOptions,
    callCredentials?: CallCredentials,
  ): SecureConnector {
    const host = this.#serverName ?? hostOf(target);
    return {
      connect: (socket) => this.#handshake(socket, host),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials ?? credentials.createEmpty(),
      destroy: () => {},
    };
  }

  /**
   * Ends the handshakes in progress and refuses new ones. grpc-js does not: a server that accepts a
   * connection and stays silent (a member stopped by SIGSTOP) would keep the client's process alive
   * for ever.
   */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#handshakes) socket.destroy();
  }

  #handshake(socket: Socket, host: string): Promise<SecureConnectResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        socket.destroy();
        reject(new Error("the client was closed"));
        return;
      }
      this.#handshakes.add(socket);
      const secure = tlsConnect({
        socket,
        host,
        ...(isIP(host) === 0 ? { servername: host } : {}),
        secureContext: this.#context,
        rejectUnauthorized: this.#verifies,
        ALPNProtocols: ["h2"],
      });
      secure.once("secureConnect", () => {
        this.#handshakes.delete(socket);
        resolve({ socket: secure, secure: true });
      });
      secure.once("error", reject);
      // A server that closes the connection during the handshake causes neither event.
      secure.once("close", () => {
        this.#handshakes.delete(socket);
        reject(new Error("the connection was closed during the TLS handshake"));
      });
    });
  }
}

/**
 * The host of a target such as "dns:example.org:2379", "[::1]:2379" or "unix:/path", for which
 * "localhost" stands in.
 */
function hostOf(target: GrpcUri): string {
  if (target.scheme === "unix") return "localhost";
  const path = target.path.replace(/^\/+/, "");
  return /^\[([^\]]*)\]/.exec(path)?.[1] ?? path.replace(/:[0-9]*$/, "");
}

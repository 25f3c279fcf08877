/**
 * TLS for grpc-js's channels. Its own credentials name the host in the handshake even where it is
 * an address, which TLS does not allow and Node 26 refuses; these name it only where it is a name,
 * and check addresses against the certificate all the same.
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

/** What certificates and keys are made into. Throws the reason if they cannot be read. */
export function tlsContext(options: SecureContextOptions): SecureContext {
  return createSecureContext({ ...options, minVersion: "TLSv1.2" });
}

/** The credentials of one link, which closes them. */
export class TlsCredentials extends ChannelCredentials {
  readonly #context: SecureContext;
  readonly #verifies: boolean;
  readonly #serverName: string | undefined;

  /** Sockets whose handshakes are under way. */
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
   * Ends the handshakes that are under way; there are no more after that. grpc-js does not: a
   * server that takes a connection and never says a word (a member that is stopped by a signal)
   * would keep the process of the client alive for ever.
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
      // A server that refuses without a word leaves neither of the two.
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

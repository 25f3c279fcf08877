/**
 * TLS for grpc-js's channels. Its own credentials name the host in the handshake even where it is an address, which TLS does not allow
 * and Node 26 refuses; these name it only where it is a name, and check addresses against the certificate all the same.
 */
import { isIP, type Socket } from "node:net";
import { createSecureContext, type SecureContextOptions, connect as tlsConnect } from "node:tls";
import { type CallCredentials, ChannelCredentials, type ChannelOptions, credentials } from "@grpc/grpc-js";

type GrpcUri = Parameters<ChannelCredentials["_createSecureConnector"]>[0];
type SecureConnector = ReturnType<ChannelCredentials["_createSecureConnector"]>;
type SecureConnectResult = Awaited<ReturnType<SecureConnector["connect"]>>;

export class TlsCredentials extends ChannelCredentials {
  readonly #context: ReturnType<typeof createSecureContext>;
  readonly #verifies: boolean;
  readonly #serverName: string | undefined;

  /** Throws the reason if the certificates or the key cannot be read. */
  constructor(options: SecureContextOptions, how: { readonly insecureSkipVerify?: boolean; readonly serverName?: string }) {
    super();
    this.#context = createSecureContext({ ...options, minVersion: "TLSv1.2" });
    this.#verifies = how.insecureSkipVerify !== true;
    this.#serverName = how.serverName;
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(target: GrpcUri, _options: ChannelOptions, callCredentials?: CallCredentials): SecureConnector {
    const host = this.#serverName ?? hostOf(target);
    return {
      connect: (socket) => this.#handshake(socket, host),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials ?? credentials.createEmpty(),
      destroy: () => {},
    };
  }

  #handshake(socket: Socket, host: string): Promise<SecureConnectResult> {
    return new Promise((resolve, reject) => {
      const secure = tlsConnect({
        socket,
        host,
        ...(isIP(host) === 0 ? { servername: host } : {}),
        secureContext: this.#context,
        rejectUnauthorized: this.#verifies,
        ALPNProtocols: ["h2"],
      });
      secure.once("secureConnect", () => resolve({ socket: secure, secure: true }));
      secure.once("error", reject);
      // A server that refuses without a word leaves neither of the two.
      secure.once("close", () => reject(new Error("the connection was closed during the TLS handshake")));
    });
  }
}

/** The host of a target such as "dns:example.org:2379", "[::1]:2379" or "unix:/path", for which "localhost" stands in. */
function hostOf(target: GrpcUri): string {
  if (target.scheme === "unix") return "localhost";
  const path = target.path.replace(/^\/+/, "");
  return /^\[([^\]]*)\]/.exec(path)?.[1] ?? path.replace(/:[0-9]*$/, "");
}

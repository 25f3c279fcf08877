/**
 * The user of a request (apiserver: pkg/authentication/request/{x509,bearertoken,anonymous}):
 *
 *     client certificate -> bearer token -> token of a WebSocket -> anonymous
 *
 * A credential that is not valid ends in 401 "Unauthorized", unless another one is; why is only in
 * the log. A request without any is anonymous where that is allowed.
 */
import { type HttpHead, type Logger, WarningInterval } from "@quorate/host";
import { ANONYMOUS, ApiError, type Authenticator, type UserInfo } from "@quorate/kube-storage";
import { isWebSocketRequest, socketProtocols } from "./socket-protocols.ts";
import { InvalidTokenError, type TokenAuthenticator } from "./token-authenticator.ts";
import { CREDENTIAL_ID_KEY, withAuthenticatedGroup } from "./user-names.ts";

/** One line in so long about refused credentials, with a count of the others. */
const WARN_PERIOD_MS = 5000;

export interface RequestAuthenticatorOptions {
  /** Whether the client port verifies client certificates against a CA. */
  readonly clientCertificates: boolean;
  readonly tokens: TokenAuthenticator | undefined;
  /** The server's own audiences, which tokens must be made for. */
  readonly audiences: readonly string[];
  readonly allowAnonymous: boolean;
}

export interface RequestAuthenticatorDependencies {
  readonly logger: Logger;
  readonly monotonicMs: () => number;
}

/** 401 as Kubernetes sends it. */
export function unauthorized(): ApiError {
  return new ApiError(401, "Unauthorized", "Unauthorized");
}

export class RequestAuthenticator implements Authenticator {
  readonly #options: RequestAuthenticatorOptions;
  readonly #dependencies: RequestAuthenticatorDependencies;
  readonly #warnings = new WarningInterval(WARN_PERIOD_MS);

  constructor(
    options: RequestAuthenticatorOptions,
    dependencies: RequestAuthenticatorDependencies,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  async authenticate(head: HttpHead): Promise<UserInfo | undefined> {
    const { clientCertificates, tokens, audiences, allowAnonymous } = this.#options;
    const fromCertificate = clientCertificates ? certificateUser(head) : undefined;
    if (fromCertificate !== undefined) return withAuthenticatedGroup(fromCertificate);
    const token = bearerToken(head.headers.get("authorization")) ?? this.#socketToken(head);
    if (token !== undefined && tokens !== undefined) {
      const user = await this.#tokenUser(tokens, token, audiences);
      if (user === undefined) throw unauthorized();
      return withAuthenticatedGroup(user);
    }
    const { peerCertificateError } = head;
    if (clientCertificates && peerCertificateError !== undefined) {
      this.#refused(`the client certificate does not verify: ${peerCertificateError}`);
    } else if (allowAnonymous) return ANONYMOUS;
    throw unauthorized();
  }

  /** Throws ApiError 401 for one that is malformed. */
  #socketToken(head: HttpHead): string | undefined {
    if (!isWebSocketRequest(head)) return undefined;
    try {
      return socketProtocols(head).token;
    } catch (error) {
      this.#refused((error as Error).message);
      throw unauthorized();
    }
  }

  async #tokenUser(
    tokens: TokenAuthenticator,
    token: string,
    audiences: readonly string[],
  ): Promise<UserInfo | undefined> {
    try {
      const identity = await tokens.authenticateToken(token, audiences);
      if (identity === undefined) this.#refused("invalid bearer token");
      return identity?.user;
    } catch (error) {
      if (!(error instanceof InvalidTokenError)) throw error;
      this.#refused(error.message);
      return undefined;
    }
  }

  #refused(reason: string): void {
    const { logger, monotonicMs } = this.#dependencies;
    const omitted = this.#warnings.pass(monotonicMs());
    if (omitted === undefined) return;
    const others = omitted === 0 ? {} : { "refused-since-last-warning": omitted };
    logger.warn("a request could not be authenticated", { reason, ...others });
  }
}

/** CN is the user, each O a group. The port has verified the certificate. */
function certificateUser(head: HttpHead): UserInfo | undefined {
  const { peerCommonName, peerOrganizations, peerCertificateSha256 } = head;
  if (peerCommonName === undefined || peerCommonName === "") return undefined;
  const extra: Record<string, readonly string[]> = {};
  if (peerCertificateSha256 !== undefined) {
    extra[CREDENTIAL_ID_KEY] = [`X509SHA256=${peerCertificateSha256}`];
  }
  return { name: peerCommonName, uid: "", groups: peerOrganizations ?? [], extra };
}

/** The token of an Authorization header (RFC 6750); undefined where it has none. */
export function bearerToken(header: string | undefined): string | undefined {
  const [scheme, token] = (header ?? "").trim().split(" ", 3);
  if (token === undefined || token === "" || scheme.toLowerCase() !== "bearer") return undefined;
  return token;
}

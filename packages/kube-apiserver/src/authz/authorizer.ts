/** Who may do what (apiserver: pkg/authorization/authorizer). */
import type { UserInfo } from "@quorate/kube-storage";

/** What a request wants to do. */
export interface AuthorizerAttributes {
  readonly user: UserInfo;
  /** get, list, watch, create, update, patch, delete, deletecollection, escalate, bind, … */
  readonly verb: string;
  readonly isResourceRequest: boolean;
  readonly namespace: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** For requests that are not about resources, such as "/healthz". */
  readonly path: string;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "no-opinion";
  /** For the client's message and for the audit log. */
  readonly reason: string;
  /** What went wrong; the request fails with it, unless it is allowed all the same. */
  readonly error?: string;
}

export interface Authorizer {
  authorize(attributes: AuthorizerAttributes): Promise<Decision>;
}

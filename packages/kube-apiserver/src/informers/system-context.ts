/** Requests that the server makes to itself. */

import type { Cancellation, RequestContext, UserInfo } from "@quorate/kube-storage";
import { MASTERS_GROUP } from "../authn/user-names.ts";

/** As kube-apiserver's loopback client. */
export const SYSTEM_USER: UserInfo = {
  name: "system:apiserver",
  uid: "",
  groups: [MASTERS_GROUP],
  extra: {},
};

const NEVER: Cancellation = {
  aborted: false,
  reason: undefined,
  addEventListener() {},
  removeEventListener() {},
};

/** The context of a request that may do everything. Its warnings have no reader. */
export function systemContext(namespace = "", signal: Cancellation = NEVER): RequestContext {
  return { user: SYSTEM_USER, namespace, signal, warn() {} };
}

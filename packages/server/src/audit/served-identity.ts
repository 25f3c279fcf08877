/** The identity of a call that has ended, for its line. */

import type { Authority } from "@quorate/member";
import { callerOf } from "@quorate/member";
import type { CallContext } from "@quorate/rpc";
import type { ProvedIdentity } from "./settings.ts";

/**
 * The identity by which a call was served. It was found out when the call was admitted, so it is
 * at hand; undefined where it is not any more: the token has ended, the user is deleted.
 */
export function servedIdentity(
  authority: Pick<Authority, "identify">,
  context: CallContext,
): ProvedIdentity | undefined {
  try {
    const identity = authority.identify(callerOf(context));
    if (!(identity instanceof Promise)) return identity;
    identity.catch(() => {});
  } catch {
    // The call was refused for it.
  }
  return undefined;
}

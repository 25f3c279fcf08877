/**
 * The routes of /v2/, with --enable-v2 alone.
 *
 *     keys-handler.ts     /v2/keys      reads (tree, listing), writes (plan, writes), waits (wait)
 *     members-handler.ts  /v2/members   /v2/machines
 *     stats-handler.ts    /v2/stats/
 */
import { type HttpExchangeHandler, plainError } from "@quorate/host";
import type { Member } from "@quorate/member";
import { type CallParts, callServices } from "./calls.ts";
import { StoreCounters } from "./counters.ts";
import { messageError, served } from "./http.ts";
import { keysHandler } from "./keys-handler.ts";
import { V2_LIMITS, type V2Limits } from "./limits.ts";
import { machinesHandler, membersHandler } from "./members-handler.ts";
import { statsHandlers } from "./stats-handler.ts";

const NO_USERS = "the users and roles of v2 are not served: use those of v3 (etcdctl user, role)";

/** The handlers, by path; those that end in "/" take all paths below. */
export function v2Routes(
  member: Member,
  parts: CallParts,
  limits: V2Limits = V2_LIMITS,
): ReadonlyMap<string, HttpExchangeHandler> {
  const to = callServices(member, parts);
  const counters = new StoreCounters();
  const keys = keysHandler({ member, to, counters, limits });
  const members = membersHandler({ member, to });
  const methods = ["GET", "HEAD", "PUT", "POST", "DELETE"];
  const notFound = served(methods, Number.MAX_SAFE_INTEGER, ({ exchange }) =>
    exchange.respond(plainError(404, "404 page not found")),
  );
  const auth = served(methods, Number.MAX_SAFE_INTEGER, ({ exchange, path }) => {
    if (path === "/v2/auth/enable" && exchange.head.method === "GET") {
      const body = `{"enabled":${member.store.auth.isEnabled}}\n`;
      exchange.respond({ status: 200, headers: { "content-type": "application/json" }, body });
    } else exchange.respond(messageError(403, NO_USERS));
  });
  return new Map([
    ["/v2/keys", keys],
    ["/v2/keys/", keys],
    ["/v2/members", members],
    ["/v2/members/", members],
    ["/v2/machines", machinesHandler({ member, to })],
    ...statsHandlers({ member, to }, counters),
    ["/v2/auth/", auth],
    ["/v2/", notFound],
  ]);
}

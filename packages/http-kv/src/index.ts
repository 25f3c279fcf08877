/** The HTTP interface for keys of one member. */
import type { HttpExchangeHandler } from "@quorate/host";
import type { Member } from "@quorate/member";
import { callerOf } from "@quorate/member";
import { KVService, RangeRequest } from "@quorate/proto";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { contextOf, crossOrigin, type ExchangeCaller, type HttpAccess } from "@quorate/services";
import { httpKvRoutes } from "./routes.ts";

const NO_ORIGINS: ReadonlySet<string> = new Set();

export interface HttpKvParts {
  /** All services of the member, with what goes on around calls (audit, tracing). */
  readonly services: ServiceTable;
  /** As pageTable(), with the same around it. */
  readonly pages: ServiceTable;
  readonly observer: RpcObserver | undefined;
  /** Whose pages may write. */
  readonly access: Pick<HttpAccess, "allowedOrigins" | "areOriginsGiven">;
  /** Random bytes, secret to this process. */
  readonly hashKey: Uint8Array;
}

/** The handlers of /kv/, /watch/ and /txn, by path or prefix. */
export function httpKv(
  member: Member,
  parts: HttpKvParts,
): ReadonlyMap<string, HttpExchangeHandler> {
  const { logins } = member.auth;
  const { path } = KVService.methods.Range;
  const mayRead = async (caller: ExchangeCaller, key: Uint8Array): Promise<boolean> => {
    const access = { kind: "range", request: RangeRequest.create({ key }) } as const;
    try {
      await member.permit(callerOf(contextOf(path, caller)), access);
      return true;
    } catch {
      return false;
    }
  };
  const { allowedOrigins, areOriginsGiven } = parts.access;
  const writers = areOriginsGiven ? allowedOrigins : NO_ORIGINS;
  return httpKvRoutes({
    ...parts,
    clock: member.clock,
    maxRequestBytes: member.config.maxRequestBytes,
    maxTxnOps: member.config.maxTxnOps,
    mayRead,
    // As for all paths; here the refusal is a problem document.
    crossOrigin: (head) => crossOrigin(head, writers),
    isEnforced: () => member.store.auth.isEnabled,
    logins,
  });
}

/** What /v2/stats/store counts, on this member since its start (etcd 3.4: v2store/stats.go). */
import type { KeyRequest } from "./key-request.ts";

const COUNTED = [
  "gets",
  "sets",
  "delete",
  "update",
  "create",
  "compareAndSwap",
  "compareAndDelete",
] as const;

export type Counted = (typeof COUNTED)[number];

export class StoreCounters {
  readonly #counts = new Map<Counted, { success: number; fail: number }>();
  /** Waits that go on. */
  watchers = 0;

  count(what: Counted, isSuccess: boolean): void {
    const counts = this.#counts.get(what) ?? { success: 0, fail: 0 };
    if (isSuccess) counts.success++;
    else counts.fail++;
    this.#counts.set(what, counts);
  }

  /** @param expired leases that have ended */
  json(expired: number): string {
    const fields = COUNTED.map((what) => {
      const { success, fail } = this.#counts.get(what) ?? { success: 0, fail: 0 };
      return `"${what}Success":${success},"${what}Fail":${fail}`;
    });
    return `{${fields.join(",")},"expireCount":${expired},"watchers":${this.watchers}}`;
  }
}

/** What a request counts as (etcd 3.4: etcdserver/apply_v2.go). */
export function countedAs(request: KeyRequest): Counted {
  const { method, prevExist, prevIndex, prevValue } = request;
  const compares = prevIndex > 0 || prevValue !== "";
  if (method === "GET" || method === "HEAD") return "gets";
  if (method === "DELETE") return compares ? "compareAndDelete" : "delete";
  if (method === "POST" || prevExist === false) return "create";
  if (compares) return "compareAndSwap";
  return prevExist === true ? "update" : "sets";
}

/**
 * Keeps ServiceCIDRs while their addresses are used (Kubernetes: pkg/controller/servicecidrs):
 *
 *     there          a finalizer, and the condition Ready
 *     being deleted  Ready is false while an address is in this range alone; then a pause, in which
 *                    all servers learn of the deletion, and the finalizer goes
 */
import type { Clock, Logger } from "@quorate/host";
import { type KubeObject, metaTime, parseTime, withMetadata } from "@quorate/kube-storage";
import { listOf, objectOf } from "../builtin/rules/rules.ts";
import { ADDRESSES, ALLOCATOR, MANAGED_BY, RANGES } from "../builtin/service-addresses.ts";
import { isWithin } from "../builtin/service-ranges.ts";
import { isConflict, isNotFound, type LocalClient } from "../informers/local-client.ts";
import { WorkQueue } from "./work-queue.ts";

export const MAX_SERVICE_CIDRS = 10_000;
/** How long a range without addresses stays. */
export const DELETION_GRACE_MS = 10_000;
const FINALIZER = "networking.k8s.io/service-cidr-finalizer";
const READY = { status: "True", reason: "", message: "Kubernetes Service CIDR is ready" };
const BLOCKED = {
  status: "False",
  reason: "Terminating",
  message:
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
};

export interface ServiceCidrsDeps {
  readonly client: LocalClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ServiceCidrs {
  readonly #deps: ServiceCidrsDeps;
  readonly #queue: WorkQueue<string>;
  readonly #ranges = new Map<string, KubeObject>();
  readonly #deleting = new Set<string>();

  constructor(deps: ServiceCidrsDeps) {
    this.#deps = deps;
    this.#queue = new WorkQueue(
      {
        name: "service CIDRs",
        concurrency: 2,
        maxKeys: MAX_SERVICE_CIDRS,
        process: (name) => this.#process(name),
        rescan: () => {
          for (const name of this.#ranges.keys()) this.#queue.add(name);
        },
      },
      deps.clock,
      deps.logger,
    );
  }

  /** Call it with each ServiceCIDR as it changes. */
  observe(range: KubeObject): void {
    const { name = "", deletionTimestamp } = range.metadata;
    this.#ranges.set(name, range);
    if (deletionTimestamp !== undefined) this.#deleting.add(name);
    this.#queue.add(name);
    this.addressGone();
  }

  remove({ metadata: { name = "" } }: KubeObject): void {
    this.#ranges.delete(name);
    this.#deleting.delete(name);
    this.addressGone();
  }

  /** One that goes may have waited for this. */
  addressGone(): void {
    for (const name of this.#deleting) this.#queue.add(name);
  }

  stop(): void {
    this.#queue.stop();
  }

  async #process(name: string): Promise<boolean> {
    const { client, clock } = this.#deps;
    const range = await client.get(RANGES, "", name);
    if (range === undefined) return true;
    try {
      const { deletionTimestamp } = range.metadata;
      if (deletionTimestamp === undefined) {
        await this.#finalize(name, true);
        await this.#report(name, READY);
      } else if (await this.#isNeeded(range)) await this.#report(name, BLOCKED);
      else {
        const sinceMs = clock.wallMs() - (parseTime(deletionTimestamp) ?? 0);
        if (sinceMs >= DELETION_GRACE_MS) await this.#finalize(name, false);
        else this.#queue.addAfter(name, DELETION_GRACE_MS - sinceMs);
      }
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** Whether an address would be in no range without this one. */
  async #isNeeded(range: KubeObject): Promise<boolean> {
    const cidrs = cidrsOf(range);
    const others = [...this.#ranges]
      .filter(([name]) => name !== range.metadata.name)
      .flatMap(([, other]) => cidrsOf(other));
    const isElsewhere = (inner: string): boolean => others.some((cidr) => isWithin(inner, cidr));
    if (cidrs.every(isElsewhere)) return false;
    let isNeeded = false;
    await this.#deps.client.each(ADDRESSES, "", (address) => {
      const { name = "", labels } = address.metadata;
      if (isNeeded || labels?.[MANAGED_BY] !== ALLOCATOR) return;
      isNeeded = cidrs.some((cidr) => isWithin(name, cidr)) && !isElsewhere(name);
    });
    return isNeeded;
  }

  async #finalize(name: string, isKept: boolean): Promise<void> {
    await this.#deps.client.update(RANGES, "", name, (range) => {
      const { finalizers = [] } = range.metadata;
      if (finalizers.includes(FINALIZER) === isKept) return undefined;
      const others = finalizers.filter((one) => one !== FINALIZER);
      return withMetadata(range, { finalizers: isKept ? [...finalizers, FINALIZER] : others });
    });
  }

  async #report(name: string, wanted: typeof READY): Promise<void> {
    const { client, clock } = this.#deps;
    await client.update({ ...RANGES, subresource: "status" }, "", name, (range) => {
      const conditions = listOf(objectOf(range["status"])["conditions"]);
      const others = conditions.filter(({ type }) => type !== "Ready");
      const { status, reason, message } = conditions.find(({ type }) => type === "Ready") ?? {};
      const isSame =
        status === wanted.status && (reason ?? "") === wanted.reason && message === wanted.message;
      if (isSame) return undefined;
      const lastTransitionTime = metaTime(clock.wallMs());
      const ready = { type: "Ready", ...wanted, lastTransitionTime };
      return { ...range, status: { conditions: [...others, ready] } };
    });
  }
}

function cidrsOf(range: KubeObject): readonly string[] {
  return listOf<string>(objectOf(range["spec"])["cidrs"]);
}

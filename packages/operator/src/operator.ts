/**
 * The operator: watches the kinds, and works on each object that changed, one step after the other.
 *
 *     watch, list --> due now --> reconcile --> due again after what that says
 *                                    '-- error --> due again after a growing pause
 *
 * An object is worked on once at a time. Watches only say that something changed: what is done
 * rests on what is read then, so a lost event costs time and nothing else.
 */
import { Backoff, type Clock, type Logger, type Random, type Timer } from "@quorate/host";
import { type Key, type Kind, type Kube, type KubeObject, keyOf } from "./base/kube.ts";
import type { OperatorMetrics } from "./base/metrics.ts";
import { CLUSTER_LABEL } from "./cluster/objects.ts";

/** Works on one object; resolves to the pause before the next time, undefined for none. */
export interface Reconciler {
  reconcile(key: Key): Promise<number | undefined>;
}

export interface OperatorDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

/** The kinds that the operator keeps, each with who does it. */
export type Reconcilers = Readonly<Partial<Record<Kind, Reconciler>>>;

/** Objects that are worked on at the same time. */
const CONCURRENCY = 8;
/** Objects of which the operator keeps track; more are found again by the next list. */
export const MAX_OBJECTS = 10_000;
/** All objects are listed so often, whatever watches have said. */
const RELIST_MS = 60_000;
const RETRY = { firstMs: 500, mostMs: 30_000 };
/** Kinds whose changes mean work on the cluster that their label names. */
const CHILDREN: readonly Kind[] = ["Pod", "PersistentVolumeClaim", "Secret"];

interface Item {
  readonly kind: Kind;
  readonly key: Key;
  readonly backoff: Backoff;
  timer: Timer | undefined;
  isRunning: boolean;
  /** Changed while it was worked on. */
  isDirty: boolean;
}

export class Operator {
  readonly #namespace: string;
  readonly #reconcilers: Reconcilers;
  readonly #deps: OperatorDeps;
  readonly #items = new Map<string, Item>();
  readonly #ready: Item[] = [];
  readonly #ends: (() => void)[] = [];
  #running = 0;
  #isStopped = false;
  #idle: (() => void) | undefined;

  /** @param namespace the one that is watched, "" for all */
  constructor(namespace: string, reconcilers: Reconcilers, deps: OperatorDeps) {
    this.#namespace = namespace;
    this.#reconcilers = reconcilers;
    this.#deps = deps;
  }

  /** Begins. Called once. */
  start(): void {
    const kinds = Object.keys(this.#reconcilers) as Kind[];
    for (const kind of kinds) this.#follow(kind, (object) => this.#touch(kind, keyOf(object)));
    for (const kind of CHILDREN) {
      this.#follow(kind, ({ metadata }) => {
        const name = metadata.labels?.[CLUSTER_LABEL];
        const namespace = metadata.namespace ?? "";
        if (name !== undefined) this.#touch("QuorateCluster", { namespace, name });
      });
    }
    const list = async (): Promise<void> => {
      for (const kind of kinds) {
        try {
          const objects = await this.#deps.kube.list(kind, this.#namespace, "");
          for (const object of objects) this.#touch(kind, keyOf(object));
        } catch (error) {
          this.#deps.logger.warn("a list failed", { kind, error: String(error) });
        }
      }
    };
    void list();
    const timer = this.#deps.clock.every(RELIST_MS, () => void list());
    this.#ends.push(() => timer.cancel());
  }

  /** Ends; resolves when no step is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const end of this.#ends) end();
    for (const { timer } of this.#items.values()) timer?.cancel();
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  #follow(kind: Kind, changed: (object: KubeObject) => void): void {
    const { kube, clock, random, logger } = this.#deps;
    const backoff = new Backoff(RETRY, random);
    let end: (() => void) | undefined;
    let timer: Timer | undefined;
    const open = (): void => {
      const seen = (object: KubeObject): void => {
        backoff.reset();
        changed(object);
      };
      end = kube.watch(kind, this.#namespace, seen, (error) => {
        if (this.#isStopped) return;
        logger.debug("a watch ended", { kind, error: String(error) });
        timer = clock.after(backoff.nextMs(), open);
      });
    };
    open();
    this.#ends.push(() => {
      end?.();
      timer?.cancel();
    });
  }

  /** Has an object worked on as soon as may be. */
  #touch(kind: Kind, key: Key): void {
    if (this.#isStopped || this.#reconcilers[kind] === undefined) return;
    const id = `${kind}/${key.namespace}/${key.name}`;
    let item = this.#items.get(id);
    if (item === undefined) {
      if (this.#items.size >= MAX_OBJECTS) return;
      const backoff = new Backoff(RETRY, this.#deps.random);
      item = { kind, key, backoff, timer: undefined, isRunning: false, isDirty: false };
      this.#items.set(id, item);
    }
    if (item.isRunning) item.isDirty = true;
    else this.#due(item, 0);
  }

  #due(item: Item, afterMs: number): void {
    item.timer?.cancel();
    item.timer = undefined;
    if (this.#isStopped) return;
    if (afterMs > 0) {
      item.timer = this.#deps.clock.after(afterMs, () => this.#due(item, 0));
      return;
    }
    if (!this.#ready.includes(item)) this.#ready.push(item);
    this.#next();
  }

  #next(): void {
    while (this.#running < CONCURRENCY && !this.#isStopped) {
      const item = this.#ready.shift();
      this.#deps.metrics.queued.with("operator").value = this.#ready.length;
      if (item === undefined) return;
      this.#running++;
      void this.#work(item);
    }
  }

  async #work(item: Item): Promise<void> {
    const { clock, logger, metrics } = this.#deps;
    const { kind, key } = item;
    item.isRunning = true;
    item.isDirty = false;
    const startMs = clock.monotonicMs();
    let afterMs: number | undefined;
    let result = "success";
    try {
      afterMs = await this.#reconcilers[kind]!.reconcile(key);
      if (afterMs !== undefined) result = "requeue_after";
      item.backoff.reset();
    } catch (error) {
      result = "error";
      afterMs = item.backoff.nextMs();
      metrics.errors.with(kind).add();
      const fields = { kind, namespace: key.namespace, name: key.name, error: String(error) };
      logger.warn("an object could not be worked on", fields);
    }
    metrics.reconciles.with(kind, result).add();
    metrics.seconds.with(kind).observe((clock.monotonicMs() - startMs) / 1000);
    item.isRunning = false;
    this.#running--;
    if (this.#isStopped) {
      if (this.#running === 0) this.#idle?.();
      return;
    }
    if (item.isDirty && result !== "error") this.#due(item, 0);
    else if (afterMs !== undefined) this.#due(item, afterMs);
    else this.#items.delete(`${kind}/${key.namespace}/${key.name}`);
    this.#next();
  }
}

/**
 * Faults by seed, for tests of controllers (Sun et al., "Automatic Reliability Testing For Cluster
 * Management Controllers", OSDI 2022, name the kinds). Each is what an API server may do:
 *
 *     stale list     resourceVersion=0 promises no more than some state of the past, which may be
 *                    older than what the client has seen: a server that lags behind answers so
 *     late events    a watch has its events in order; when it sends them is not promised
 *     gone           a server that has just filled its cache knows no change before that
 *     conflict       another client really writes the object before: the same bytes again, as a
 *                    migration of storage does, so that only its resourceVersion goes on
 *     cut            connections end
 *     lost answer    a connection ends after the write
 *
 * The n-th request of a kind by a client has a stream of random numbers of its own, so what it
 * meets does not depend on time, nor on what others do. Whether it can is another matter: without
 * changes there is no earlier state. After MAX_IN_ROW faults a request of the kind has none.
 */
import { type Clock, escapeControls, type Logger, type Random, SeededRandom } from "@quorate/host";
import {
  type ApiError,
  expired,
  invalid,
  type KubeObject,
  type RestList,
  type RestListOptions,
  type ServedResource,
  type Watch,
} from "@quorate/kube-storage";
import { Revisions } from "./revisions.ts";
import type { ChaosSettings } from "./settings.ts";
import { SlowWatch } from "./slow-watch.ts";

/** Requests of a kind by a client that meet faults one after another. */
export const MAX_IN_ROW = 4;
/** Kinds of requests times clients that are counted; further ones share one count. */
export const MAX_COUNTED = 4096;
/** A watch is cut off after so many events at most. */
const MAX_EVENTS_BEFORE_CUT = 16;
const MAX_CLIENT_CHARS = 64;

export type FaultName = "stale list" | "late event" | "gone" | "conflict" | "cut" | "lost answer";

/** A fault that happened. */
export interface ChaosFault {
  readonly fault: FaultName;
  /** The first word of the client's User-Agent. */
  readonly client: string;
  /** Such as "list apps/deployments". */
  readonly request: string;
  /** Which request of its kind by this client it was, from 1. */
  readonly n: number;
  /** What the client sees, and what is true. */
  readonly why: string;
}

/** A request, as faults need it. */
export interface ChaosCall {
  readonly userAgent: string;
  readonly target: { readonly verb: string; readonly namespace: string; readonly name: string };
  readonly query: { has(name: string): boolean; flag(name: string): boolean | undefined };
  loseAnswer(onLost: () => void): void;
}

export interface ChaosDeps {
  readonly clock: Pick<Clock, "after">;
  readonly logger: Logger;
  /** Writes an object's bytes again. Resolves with the revision; undefined if there is none. */
  rewrite(resource: ServedResource, namespace: string, name: string): Promise<number | undefined>;
  /** Told of each fault. */
  onFault?(fault: ChaosFault): void;
}

/** Requests of one kind by one client. */
interface Counted {
  count: number;
  /** The latest ones that met a fault, without one between. */
  inRow: number;
  /** The revision of the latest stale list. */
  staleAt: number;
}

export class Chaos {
  readonly settings: ChaosSettings;
  readonly deps: ChaosDeps;
  readonly revisions = new Revisions();
  readonly #random: Random;
  readonly #counted = new Map<string, Counted>();
  #faults = 0;

  constructor(settings: ChaosSettings, deps: ChaosDeps) {
    this.settings = settings;
    this.deps = deps;
    this.#random = new SeededRandom(BigInt(settings.seed));
  }

  /** What the request meets; undefined where its client is not meant. */
  of(call: ChaosCall, resource: ServedResource): RequestChaos | undefined {
    this.revisions.follow(resource);
    const { agent, resources } = this.settings;
    if (!call.userAgent.includes(agent)) return undefined;
    if (resources.length > 0 && !resources.includes(resource.resource)) return undefined;
    const client = clientOf(call.userAgent);
    const { group, subresource } = resource;
    const name = [group, resource.resource, subresource].filter((part) => part !== "").join("/");
    const request = `${call.target.verb} ${name}`;
    const counted = this.counted(client, request);
    const n = ++counted.count;
    const random = this.#random.fork(`${client} ${request} ${n}`);
    return new RequestChaos(
      { client, request, n },
      { chaos: this, call, resource, counted, random },
    );
  }

  counted(client: string, request: string): Counted {
    const full = this.#counted.size >= MAX_COUNTED;
    const own = `${client} ${request}`;
    const key = full && !this.#counted.has(own) ? "" : own;
    let counted = this.#counted.get(key);
    if (counted === undefined) {
      counted = { count: 0, inRow: 0, staleAt: 0 };
      this.#counted.set(key, counted);
    }
    return counted;
  }

  get isExhausted(): boolean {
    return this.#faults >= this.settings.faults;
  }

  happened(fault: ChaosFault): void {
    this.#faults++;
    this.deps.logger.info("chaos", { ...fault });
    this.deps.onFault?.(fault);
  }

  stop(): void {
    this.revisions.stop();
  }
}

function clientOf(userAgent: string): string {
  const [name = ""] = userAgent.slice(0, MAX_CLIENT_CHARS).split(/[/\s]/, 1);
  return escapeControls(name);
}

interface RequestParts {
  readonly chaos: Chaos;
  readonly call: ChaosCall;
  readonly resource: ServedResource;
  readonly counted: Counted;
  readonly random: Random;
}

/** The faults of one request. */
export class RequestChaos {
  readonly #id: Pick<ChaosFault, "client" | "request" | "n">;
  readonly #parts: RequestParts;
  readonly #inRow: number;

  constructor(id: Pick<ChaosFault, "client" | "request" | "n">, parts: RequestParts) {
    this.#id = id;
    this.#parts = parts;
    this.#inRow = parts.counted.inRow;
    parts.counted.inRow = 0;
  }

  /** Whether it is cut off before anything is done. */
  isCut(): boolean {
    const { chaos, call } = this.#parts;
    if (call.target.verb === "watch" || !this.#meets("cuts", chaos.settings.cuts)) return false;
    this.#happened("cut", "the connection ends before anything is done");
    return true;
  }

  /** Arranges that the answer of a write is lost, if that is its fate. */
  mayLoseAnswer(): void {
    const { chaos, call } = this.#parts;
    if (call.query.has("dryRun")) return;
    if (!this.#meets("crash-after-writes", chaos.settings.crashAfterWrites)) return;
    call.loseAnswer(() =>
      this.#happened("lost answer", "the write is done, and the connection ends before its answer"),
    );
  }

  /** Reads a list: an earlier state where the client has said that any will do. */
  async list(
    options: RestListOptions,
    read: (options: RestListOptions) => Promise<RestList>,
  ): Promise<RestList> {
    const stale = this.#staleOptions(options);
    if (stale === undefined) return read(options);
    const list = await read(stale.options).catch(() => undefined);
    if (list === undefined) return read(options);
    this.#parts.counted.staleAt = stale.revision;
    this.#happened("stale list", `the state at ${stale.revision}; the latest is ${stale.latest}`);
    return list;
  }

  #staleOptions(options: RestListOptions) {
    const { chaos, resource, random } = this.#parts;
    const { predicate } = options;
    if (options.resourceVersion !== "0" || predicate.continueToken !== "") return undefined;
    if (!this.#meets("stale-lists", chaos.settings.staleLists)) return undefined;
    const revisions = chaos.revisions.of(resource);
    const latest = revisions.at(-1);
    const earlier = revisions.slice(0, -1);
    if (earlier.length === 0) return undefined;
    const revision = earlier[random.fork("stale").below(earlier.length)];
    if (revision === undefined) return undefined;
    const exact: RestListOptions = {
      ...options,
      predicate: { ...predicate, limit: 0 },
      resourceVersion: String(revision),
      resourceVersionMatch: "Exact",
    };
    return { options: exact, revision, latest };
  }

  /**
   * Refuses what a server without WatchList refuses, so that clients list, where lists are to be
   * stale. Throws ApiError.
   */
  checkWatch(): void {
    const { chaos, call } = this.#parts;
    if (chaos.settings.staleLists === 0 || call.query.flag("sendInitialEvents") !== true) return;
    const why =
      "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    const kind = { group: "meta.k8s.io", kind: "ListOptions" };
    const field = "sendInitialEvents";
    throw invalid(kind, "", [{ type: "FieldValueForbidden", field, message: `Forbidden: ${why}` }]);
  }

  /** The error of a watch whose revision is too old by now; undefined for other ones. */
  gone({ resourceVersion }: RestListOptions): ApiError | undefined {
    const { chaos, resource } = this.#parts;
    const latest = chaos.revisions.of(resource).at(-1) ?? 0;
    const revision = Number(resourceVersion);
    if (!(revision > 0 && revision < latest)) return undefined;
    if (!this.#meets("gone", chaos.settings.gone)) return undefined;
    this.#happened("gone", `changes after ${revision} are gone; the latest is ${latest}`);
    return expired(`too old resource version: ${revision} (${latest})`);
  }

  /** The watch as the client gets it. @param cut ends its connection */
  watched(watch: Watch, { resourceVersion }: RestListOptions, cut: () => void): Watch {
    const { chaos, random } = this.#parts;
    const { watchDelay, cuts } = chaos.settings;
    const isCut = this.#meets("cuts", cuts);
    const lastEvent = isCut ? 1 + random.fork("cut after").below(MAX_EVENTS_BEFORE_CUT) : 0;
    const listKind = this.#id.request.replace(/^watch/, "list");
    const listed = chaos.counted(this.#id.client, listKind).staleAt;
    const followsStale = listed > 0 && String(listed) === resourceVersion;
    return new SlowWatch(
      watch,
      (n, { object }) => {
        if (n === lastEvent && !chaos.isExhausted) {
          this.#happened("cut", `the connection ends before event ${n}, of ${object.key}`);
          return "cut";
        }
        const luck = random.fork(`event ${n}`);
        const isLate = luck.unit() < watchDelay.rate || (n === 1 && followsStale);
        if (!isLate || watchDelay.maxMs === 0 || chaos.isExhausted) return { delayMs: 0 };
        const delayMs = 1 + luck.below(Math.ceil(watchDelay.maxMs));
        const what = `${object.key} at ${object.resourceVersion}`;
        this.#happened(
          "late event",
          `event ${n}, ${what}, and all behind it wait for ${delayMs} ms`,
        );
        return { delayMs };
      },
      chaos.deps.clock,
      cut,
    );
  }

  /** Lets another write of the object come first, where the update says which one it has read. */
  async beforeUpdate(object: KubeObject): Promise<void> {
    const { chaos, call, resource } = this.#parts;
    const { resourceVersion = "" } = object.metadata;
    if (resourceVersion === "" || resourceVersion === "0") return;
    if (!this.#meets("conflicts", chaos.settings.conflicts)) return;
    const { namespace, name } = call.target;
    const revision = await chaos.deps.rewrite(resource, namespace, name);
    if (revision === undefined) return;
    this.#happened("conflict", `it has read ${resourceVersion}; another write is ${revision}`);
  }

  #meets(name: string, rate: number): boolean {
    const { chaos, random } = this.#parts;
    if (chaos.isExhausted || this.#inRow >= MAX_IN_ROW) return false;
    return random.fork(name).unit() < rate;
  }

  #happened(fault: FaultName, why: string): void {
    const { chaos, counted } = this.#parts;
    counted.inRow = this.#inRow + 1;
    chaos.happened({ fault, ...this.#id, why });
  }
}

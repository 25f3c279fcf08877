/**
 * The endpoints of a client, and which of them the next attempt uses. A client stays with one until
 * that fails, and moves to the next. Each has a circuit:
 *
 *     closed      attempts go there
 *     open        after so many failures without a success between: attempts go elsewhere
 *     half open   after a pause, longer each time, one attempt goes there; what becomes of it
 *                 closes the circuit or opens it again
 *
 * Where no other is left, attempts go through open circuits too, in turn: a call fails of what its
 * attempts saw, and not of what earlier calls did.
 */
import { Backoff } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import { unlessAborted } from "./caller.ts";
import { type ClientClock, type Link, LinkError } from "./link.ts";

/** When an endpoint is left out while others serve, and for how long. */
export interface CircuitOptions {
  /** Failures without a success between that open a circuit. */
  readonly failures: number;
  /** How long it stays open the first time; twice as long each time, up to MAX_OPEN_MS. */
  readonly openMs: number;
}

/** Where endpoints come from that no option names. Rejects with Error. */
export type FindEndpoints = () => Promise<readonly string[]>;

export interface EndpointsOptions {
  /** Index of the link that is used first. */
  readonly first: number;
  readonly circuit: CircuitOptions;
  /** Finds the endpoints at the first call, and again when an attempt at each has failed. */
  readonly find?: FindEndpoints | undefined;
  /** Opens the link to one that was found. */
  readonly openLink?: ((endpoint: string) => Link) | undefined;
}

/** The longest pause before an endpoint is tried again while others serve. */
const MAX_OPEN_MS = 30_000;
/** Between two looks for endpoints. */
const FIND_PAUSE_MS = 1000;
/** Endpoints of a client beyond this are not used. */
export const MAX_FOUND_ENDPOINTS = 64;

/** How an attempt ended: the server answered, nobody did, or it was given up before. */
export type Outcome = "answered" | "failed" | "unknown";

/** One endpoint. */
export class EndpointPlace {
  readonly link: Link;
  readonly #circuit: CircuitOptions;
  readonly #pauses: Backoff;
  #failures = 0;
  /** When an open circuit lets an attempt through; undefined while it is closed. */
  #triedAtMs: number | undefined;
  #isTried = false;
  /** Attempts and streams that have not ended. */
  uses = 0;
  /** It is no endpoint of the client any more; its link ends with its last use. */
  isRetired = false;
  /** It said that it cannot serve: it knows no leader, or it is a learner. */
  isUnfit = false;

  constructor(link: Link, circuit: CircuitOptions) {
    this.link = link;
    this.#circuit = circuit;
    const { openMs } = circuit;
    this.#pauses = new Backoff({ firstMs: openMs, mostMs: Math.max(openMs, MAX_OPEN_MS) });
  }

  /** Whether nothing is known against it. */
  get isClosed(): boolean {
    return this.#triedAtMs === undefined && !this.isUnfit;
  }

  /** Whether an attempt may go there while others are left. */
  isOpenTo(nowMs: number): boolean {
    return this.#triedAtMs === undefined || (nowMs >= this.#triedAtMs && !this.#isTried);
  }

  begin(nowMs: number): void {
    this.uses++;
    if (this.#triedAtMs !== undefined && nowMs >= this.#triedAtMs) this.#isTried = true;
  }

  end(outcome: Outcome, nowMs: number): void {
    this.uses--;
    this.report(outcome, nowMs);
    if (this.isRetired && this.uses === 0) this.link.close();
  }

  /** What became of an attempt. */
  report(outcome: Outcome, nowMs: number): void {
    const wasTried = this.#isTried;
    this.#isTried = false;
    if (outcome === "answered") {
      this.#failures = 0;
      this.#triedAtMs = undefined;
      this.#pauses.reset();
    } else if (outcome === "failed") {
      this.#failures++;
      const opens = this.#triedAtMs === undefined && this.#failures >= this.#circuit.failures;
      if (wasTried || opens) this.#triedAtMs = nowMs + this.#pauses.nextMs();
    }
  }
}

export class Endpoints {
  #places: readonly EndpointPlace[];
  readonly #clock: ClientClock;
  readonly #options: EndpointsOptions;
  #current: number;
  #finding: Promise<void> | undefined;
  #foundAtMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  /** @param links empty where `options.find` finds them */
  constructor(links: readonly Link[], clock: ClientClock, options: EndpointsOptions) {
    if (links.length === 0 && options.find === undefined) throw new RangeError("no endpoints");
    this.#places = links.map((link) => new EndpointPlace(link, options.circuit));
    this.#clock = clock;
    this.#options = options;
    this.#current = links.length === 0 ? 0 : options.first % links.length;
  }

  /** How many there are; 0 until they are found. */
  get count(): number {
    return this.#places.length;
  }

  get places(): readonly EndpointPlace[] {
    return this.#places;
  }

  /** The place of the next attempt; undefined while there is none. The caller ends it. */
  take(): EndpointPlace | undefined {
    const nowMs = this.#clock.nowMs();
    const used = this.#places[this.#current];
    const place = used === undefined || used.isClosed ? used : this.#choose(nowMs);
    place?.begin(nowMs);
    return place;
  }

  /** Ends an attempt or a stream; a failed one leaves its place. */
  end(place: EndpointPlace, outcome: Outcome): void {
    place.end(outcome, this.#clock.nowMs());
    if (outcome === "failed") this.leave(place.link);
  }

  /** The next attempt goes there, unless its circuit is open. */
  use(place: EndpointPlace): void {
    const at = this.#places.indexOf(place);
    if (at !== -1) this.#current = at;
  }

  /** Moves to the next endpoint if `link` is the one in use. */
  leave(link: Link): void {
    if (this.#places[this.#current]?.link === link)
      this.#current = (this.#current + 1) % this.#places.length;
  }

  /** The link to one of the client's own endpoints, or undefined. */
  linkTo(endpoint: string): Link | undefined {
    return this.#places.find(({ link }) => link.endpoint === endpoint)?.link;
  }

  /**
   * Resolves when there are endpoints. Rejects with LinkError where none are found, and with the
   * signal's reason.
   */
  async found(signal: AbortSignal): Promise<void> {
    if (this.#places.length > 0) return;
    this.lookAgain();
    try {
      await unlessAborted(this.#finding ?? Promise.resolve(), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw new LinkError(GrpcCode.Unavailable, (error as Error).message, false);
    }
  }

  /** Looks for endpoints once more, where they are found; not more often than once a second. */
  lookAgain(): void {
    const { find } = this.#options;
    const nowMs = this.#clock.nowMs();
    if (find === undefined || this.#isClosed || nowMs < this.#foundAtMs + FIND_PAUSE_MS) return;
    this.#foundAtMs = nowMs;
    const finding = find().then((endpoints) => this.#replace(endpoints));
    this.#finding = finding;
    // Known endpoints stay where the look fails; `found` says why there are none.
    finding.catch(() => {});
  }

  /** Closes all links; pending calls fail. */
  close(): void {
    this.#isClosed = true;
    for (const { link } of this.#places) link.close();
  }

  #replace(endpoints: readonly string[]): void {
    const { openLink, circuit } = this.#options;
    if (this.#isClosed || openLink === undefined) return;
    const used = this.#places[this.#current];
    const names = [...new Set(endpoints)].slice(0, MAX_FOUND_ENDPOINTS);
    const places = names.map(
      (name) =>
        this.#places.find(({ link }) => link.endpoint === name) ??
        new EndpointPlace(openLink(name), circuit),
    );
    if (places.length === 0) throw new Error("no endpoints are found");
    for (const place of this.#places.filter((one) => !places.includes(one))) {
      place.isRetired = true;
      if (place.uses === 0) place.link.close();
    }
    this.#places = places;
    this.#current = Math.max(0, used === undefined ? -1 : places.indexOf(used));
  }

  /** Of all in turn from the present one: a fit one whose circuit is not open, else any such. */
  #choose(nowMs: number): EndpointPlace | undefined {
    const inTurn = [...this.#places.slice(this.#current), ...this.#places.slice(0, this.#current)];
    const open = inTurn.filter((place) => place.isOpenTo(nowMs));
    const place = open.find(({ isUnfit }) => !isUnfit) ?? open[0] ?? inTurn[0];
    if (place !== undefined) this.use(place);
    return place;
  }
}

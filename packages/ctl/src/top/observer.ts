/**
 * What top knows of each member, and since when. Members are asked side by side; each answer is
 * known at once, whoever else is silent. A member whose answer is due is not asked again, so at
 * most one look at each is under way. Holds no timers: deadlines are the looker's.
 */
import type { Member, StatusResponse } from "@quorate/proto";
import type { Looker } from "../observe/looker.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import { labelOf } from "../observe/places.ts";
import { printable } from "../observe/text.ts";
import { figures } from "./figures.ts";
import { History } from "./history.ts";
import type { Row, Scrape } from "./row.ts";

/** Rows at the most; what a cluster lists beyond them is counted and not shown. */
export const MAX_ROWS = 64;
/** Endpoints of one member that are tried in turn. */
export const MAX_ENDPOINTS_OF_A_MEMBER = 8;

class Place implements Row {
  member: Member | undefined;
  /** Given on the command line, and so shown even when it leads to no member. */
  readonly given: boolean;
  endpoints: readonly string[];
  /** Which of the endpoints is asked next. */
  turn = 0;
  isBusy = false;
  status: StatusResponse | undefined;
  statusAtMs: number | undefined;
  round = 0;
  indexBefore: number | undefined;
  now: Scrape | undefined;
  before: Scrape | undefined;
  failure: string | undefined;
  readonly calls = new History();
  readonly fsync = new History();

  constructor(endpoints: readonly string[], given: boolean, member?: Member) {
    this.endpoints = endpoints;
    this.given = given;
    this.member = member;
  }

  get label(): string {
    return printable(labelOf(this));
  }

  get memberId(): bigint | undefined {
    return this.member?.ID ?? this.status?.header?.memberId;
  }

  get isNeverStarted(): boolean {
    return this.member !== undefined && this.member.name === "";
  }
}

export interface ObserverOptions {
  readonly endpoints: readonly string[];
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** Called after each answer or failure. */
  readonly onChange: () => void;
}

export class Observer {
  readonly #looker: Looker;
  readonly #options: ObserverOptions;
  #places: Place[];
  #listed: readonly Member[] = [];
  /** How far the member had applied that gave the list. */
  #listIndex = -1;
  #round = 0;
  readonly writes = new History();
  readonly reads = new History();

  constructor(looker: Looker, options: ObserverOptions) {
    this.#looker = looker;
    this.#options = options;
    this.#places = givenPlaces(options.endpoints);
  }

  get rows(): readonly Row[] {
    return this.#places;
  }

  /** Members that are listed and have no row. */
  get leftOut(): number {
    return Math.max(
      0,
      this.#listed.length - this.#places.filter(({ member }) => member !== undefined).length,
    );
  }

  /**
   * Asks every member that is not being asked. Resolves when all of them have answered or failed,
   * those found meanwhile as well.
   */
  async round(): Promise<void> {
    const asked = new Set<Place>();
    this.#round++;
    for (;;) {
      const due = this.#places.filter(
        (place) => !place.isBusy && !asked.has(place) && place.endpoints.length > 0,
      );
      if (due.length === 0) return;
      for (const place of due) asked.add(place);
      await Promise.all(due.map((place) => this.#look(place)));
    }
  }

  /**
   * Adds what is known now to the histories. Call it once an interval. @param isFresh whether a
   * row's figures are of this time
   */
  tick(isFresh: (row: Row) => boolean): void {
    const fresh = this.#places.filter(isFresh);
    for (const place of this.#places) {
      const known = fresh.includes(place);
      place.calls.push(known ? figures.calls(place) : undefined);
      place.fsync.push(known ? figures.fsyncP99(place) : undefined);
    }
    this.writes.push(figures.writes(fresh));
    this.reads.push(figures.reads(fresh));
  }

  async #look(place: Place): Promise<void> {
    place.isBusy = true;
    const endpoint = place.endpoints[place.turn % place.endpoints.length];
    try {
      await Promise.all([this.#askStatus(place, endpoint), this.#askMetrics(place, endpoint)]);
    } finally {
      place.isBusy = false;
    }
  }

  async #askStatus(place: Place, endpoint: string): Promise<void> {
    const { nowMs, onChange } = this.#options;
    const round = this.#round;
    const members = this.#looker.members(endpoint).catch(() => undefined);
    try {
      const status = await this.#looker.status(endpoint);
      const id = status.header?.memberId;
      if (place.member !== undefined && place.member.ID !== id) {
        this.#forgetIfGone(place);
        throw new Error(`${endpoint} leads to another member`);
      }
      place.indexBefore = place.status?.raftIndex;
      place.round = round;
      place.status = status;
      place.statusAtMs = nowMs();
      place.failure = undefined;
      this.#settle();
      onChange();
      const list = await members;
      if (list !== undefined && status.raftAppliedIndex >= this.#listIndex) {
        this.#listIndex = status.raftAppliedIndex;
        this.#listed = list;
        this.#settle();
      }
    } catch (error) {
      place.failure = printable((error as Error).message);
      // The next look tries another way to it, if there is one.
      place.turn++;
    }
    onChange();
  }

  /**
   * Where no listed member answers any more and others do in their place, the cluster was made
   * again, from a backup say.
   */
  #forgetIfGone(witness: Place): void {
    if (
      !this.#places.includes(witness) ||
      this.#places.some(
        (one) => one !== witness && one.member !== undefined && one.failure === undefined,
      )
    )
      return;
    this.#listed = [];
    this.#listIndex = -1;
    this.#places = givenPlaces(this.#options.endpoints);
  }

  async #askMetrics(place: Place, endpoint: string): Promise<void> {
    try {
      const answer = await this.#looker.metrics(endpoint);
      if (answer.status !== 200) return;
      place.before = place.now;
      place.now = { atMs: this.#options.nowMs(), metrics: new MetricsText(answer.body) };
      this.#options.onChange();
    } catch {
      // Its figures grow old, which is shown.
    }
  }

  /**
   * One row for each listed member; of endpoints that lead to the same member the first keeps the
   * row.
   */
  #settle(): void {
    if (this.#listed.length === 0) return;
    const free = new Set(this.#places);
    const places = this.#listed.slice(0, MAX_ROWS).map((member) => {
      const mine = this.#places.filter((place) => free.has(place) && leadsTo(place, member));
      for (const place of mine) free.delete(place);
      const place =
        mine.find(({ status }) => status !== undefined) ?? mine[0] ?? new Place([], false);
      place.member = member;
      const own = place.status === undefined ? [] : place.endpoints.slice(0, 1);
      const all = new Set([
        ...own,
        ...mine.flatMap(({ given, endpoints }) => (given ? endpoints.slice(0, 1) : [])),
        ...member.clientURLs,
      ]);
      place.endpoints = [...all].slice(0, MAX_ENDPOINTS_OF_A_MEMBER);
      return place;
    });
    for (const place of free) {
      // It was removed, or it is no member that anybody knows.
      place.member = undefined;
      if (place.given && places.length < MAX_ROWS) places.push(place);
    }
    this.#places = places;
    this.#looker.keepOnly(new Set(places.flatMap(({ endpoints }) => endpoints)));
  }
}

function givenPlaces(endpoints: readonly string[]): Place[] {
  return [...new Set(endpoints)].slice(0, MAX_ROWS).map((endpoint) => new Place([endpoint], true));
}

function leadsTo(place: Place, member: Member): boolean {
  if (place.member !== undefined) return place.member.ID === member.ID;
  if (place.status !== undefined) return place.status.header?.memberId === member.ID;
  const address = (text: string): string => text.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  return member.clientURLs.some((url) => address(url) === address(place.endpoints[0] ?? ""));
}

/**
 * Polls the members and keeps the newest state of each. Polls run concurrently and each response
 * counts at once, so a silent member delays no other. At most one poll per member is pending. Has
 * no timers: deadlines are the prober's.
 */
import { defined, type Member, type StatusResponse } from "@quorate/proto";
import { labelOf } from "../observe/listed-member.ts";
import { MetricsText } from "../observe/metrics-text.ts";
import type { Prober } from "../observe/prober.ts";
import { printable } from "../observe/text.ts";
import { figures } from "./figures.ts";
import type { Row, Scrape } from "./row.ts";
import { History } from "./row.ts";

/** Most rows; members beyond them are counted and not shown. */
export const MAX_ROWS = 64;
/** Most endpoints tried per member. */
export const MAX_ENDPOINTS_OF_A_MEMBER = 8;

class MemberState implements Row {
  member: Member | undefined;
  /** Whether it is from the command line: it is then shown even without a member. */
  readonly given: boolean;
  endpoints: readonly string[];
  /** Index of the endpoint to poll next. */
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
  /** Called after each response or failure. */
  readonly onChange: () => void;
}

export class Observer {
  readonly #prober: Prober;
  readonly #options: ObserverOptions;
  #members: MemberState[];
  #listed: readonly Member[] = [];
  /** Applied index of the member that sent the list. */
  #listIndex = -1;
  #round = 0;
  readonly writes = new History();
  readonly reads = new History();

  constructor(prober: Prober, options: ObserverOptions) {
    this.#prober = prober;
    this.#options = options;
    this.#members = givenMembers(options.endpoints);
  }

  get rows(): readonly Row[] {
    return this.#members;
  }

  /** Number of listed members without a row. */
  get leftOut(): number {
    return Math.max(
      0,
      this.#listed.length - this.#members.filter(({ member }) => member !== undefined).length,
    );
  }

  /**
   * Polls every member without a pending poll. Resolves when all have responded or failed,
   * including members found meanwhile.
   */
  async round(): Promise<void> {
    const asked = new Set<MemberState>();
    this.#round++;
    for (;;) {
      const due = this.#members.filter(
        (place) => !place.isBusy && !asked.has(place) && place.endpoints.length > 0,
      );
      if (due.length === 0) return;
      for (const place of due) asked.add(place);
      await Promise.all(due.map((place) => this.#look(place)));
    }
  }

  /**
   * Appends the present figures to the histories. Call once per interval.
   * @param isFresh whether a row's figures are up to date
   */
  tick(isFresh: (row: Row) => boolean): void {
    const fresh = this.#members.filter(isFresh);
    for (const place of this.#members) {
      const known = fresh.includes(place);
      place.calls.push(known ? figures.calls(place) : undefined);
      place.fsync.push(known ? figures.fsyncP99(place) : undefined);
    }
    this.writes.push(figures.writes(fresh));
    this.reads.push(figures.reads(fresh));
  }

  async #look(place: MemberState): Promise<void> {
    const { endpoints, turn } = place;
    const endpoint = defined(endpoints[turn % endpoints.length], "an endpoint");
    place.isBusy = true;
    try {
      await Promise.all([this.#askStatus(place, endpoint), this.#askMetrics(place, endpoint)]);
    } finally {
      place.isBusy = false;
    }
  }

  async #askStatus(place: MemberState, endpoint: string): Promise<void> {
    const { nowMs, onChange } = this.#options;
    const round = this.#round;
    const members = this.#prober.members(endpoint).catch(() => undefined);
    try {
      const status = await this.#prober.status(endpoint);
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
      // The next poll tries another endpoint of the member, if there is one.
      place.turn++;
    }
    onChange();
  }

  /**
   * If no listed member responds and others do at their endpoints, the cluster was recreated, for
   * example from a backup.
   */
  #forgetIfGone(witness: MemberState): void {
    if (
      !this.#members.includes(witness) ||
      this.#members.some(
        (one) => one !== witness && one.member !== undefined && one.failure === undefined,
      )
    )
      return;
    this.#listed = [];
    this.#listIndex = -1;
    this.#members = givenMembers(this.#options.endpoints);
  }

  async #askMetrics(place: MemberState, endpoint: string): Promise<void> {
    try {
      const answer = await this.#prober.metrics(endpoint);
      if (answer.status !== 200) return;
      place.before = place.now;
      place.now = { atMs: this.#options.nowMs(), metrics: new MetricsText(answer.body) };
      this.#options.onChange();
    } catch {
      // Its figures become stale, which is shown.
    }
  }

  /**
   * One row per listed member; of several endpoints of one member the first keeps the row.
   */
  #settle(): void {
    if (this.#listed.length === 0) return;
    const free = new Set(this.#members);
    const places = this.#listed.slice(0, MAX_ROWS).map((member) => {
      const mine = this.#members.filter((place) => free.has(place) && leadsTo(place, member));
      for (const place of mine) free.delete(place);
      const place =
        mine.find(({ status }) => status !== undefined) ?? mine[0] ?? new MemberState([], false);
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
      // The member was removed, or is unknown.
      place.member = undefined;
      if (place.given && places.length < MAX_ROWS) places.push(place);
    }
    this.#members = places;
    this.#prober.keepOnly(new Set(places.flatMap(({ endpoints }) => endpoints)));
  }
}

function givenMembers(endpoints: readonly string[]): MemberState[] {
  return [...new Set(endpoints)]
    .slice(0, MAX_ROWS)
    .map((endpoint) => new MemberState([endpoint], true));
}

function leadsTo(place: MemberState, member: Member): boolean {
  if (place.member !== undefined) return place.member.ID === member.ID;
  if (place.status !== undefined) return place.status.header?.memberId === member.ID;
  const address = (text: string): string => text.replace(/^\w+:\/\//, "").replace(/\/$/, "");
  return member.clientURLs.some((url) => address(url) === address(place.endpoints[0] ?? ""));
}

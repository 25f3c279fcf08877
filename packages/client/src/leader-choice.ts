/**
 * Where a client prefers the leader: asks every endpoint for its status now and then, while calls
 * are made, and has the next call go to the one that leads. What an endpoint answers also says
 * whether it can serve, and closes its circuit.
 */
import { MaintenanceService } from "@quorate/proto";
import type { EndpointPlace, Endpoints } from "./endpoints.ts";
import { type CallMetadata, type ClientClock, LinkError } from "./link.ts";

const { Status } = MaintenanceService.methods;

/** Between two rounds of questions. */
const ROUND_MS = 5000;
/** The same after a failed attempt, which may be a change of leaders. */
const ROUND_AFTER_FAILURE_MS = 250;

export class LeaderChoice {
  readonly #endpoints: Endpoints;
  readonly #clock: ClientClock;
  readonly #timeoutMs: number;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;

  /** @param timeoutMs of a question */
  constructor(endpoints: Endpoints, clock: ClientClock, timeoutMs: number) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Begins a round where the last one is too old. @param metadata of the call that is made */
  look(metadata: CallMetadata, hasFailed: boolean): void {
    const nowMs = this.#clock.nowMs();
    const pauseMs = hasFailed ? ROUND_AFTER_FAILURE_MS : ROUND_MS;
    if (this.#isAsking || nowMs < this.#askedAtMs + pauseMs) return;
    this.#askedAtMs = nowMs;
    this.#isAsking = true;
    void Promise.all(this.#endpoints.places.map((place) => this.#ask(place, metadata))).then(
      (answers) => {
        this.#isAsking = false;
        // A deposed leader may not know yet: the newest term counts.
        const leading = answers.filter((one) => one?.isLeader === true);
        const newest = leading.sort((a, b) => (b?.term ?? 0) - (a?.term ?? 0))[0];
        if (newest !== undefined) this.#endpoints.use(newest.place);
      },
    );
  }

  async #ask(
    place: EndpointPlace,
    { token }: CallMetadata,
  ): Promise<
    { readonly place: EndpointPlace; readonly isLeader: boolean; readonly term: number } | undefined
  > {
    const { link } = place;
    const request = Status.requestType.encode({});
    try {
      const bytes = await link.call(
        Status.path,
        request,
        { token },
        this.#timeoutMs,
        this.#timeoutMs,
      );
      const { leader, header, isLearner, raftTerm } = Status.responseType.decode(bytes);
      place.report("answered", this.#clock.nowMs());
      place.isUnfit = leader === 0n || isLearner;
      const isLeader = leader !== 0n && leader === header?.memberId;
      return { place, isLeader, term: raftTerm };
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      return undefined;
    }
  }
}

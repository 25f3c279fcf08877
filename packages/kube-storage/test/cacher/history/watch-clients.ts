/** Clients that watch, as informers do: again from their position when a watch ends. */
import type { Random } from "@quorate/host";
import type { ListOptions } from "../../../src/storage/interface.ts";
import type { Interest } from "../support/history.ts";
import { predicateOf, Recorder } from "../support/world.ts";
import { expectedCode, LEAST_WINDOW, pick, type Run, type Server } from "./actor.ts";
import { type Judgement, judgeWatch, type WatchDemand } from "./watch-judge.ts";

const EVERYTHING: Interest = { key: "/widgets/", color: "", node: "" };
/** What beginning a watch may meet without a fault of the cache. */
const REFUSALS = new Set(["Unreachable", "TooManyRequests", "ServerTimeout", "Timeout"]);

interface Session {
  readonly server: Server;
  readonly demand: WatchDemand;
  readonly recorder: Recorder;
  /** How often the cache had been filled when it began. */
  readonly initializations: number;
  readonly allowsBookmarks: boolean;
  /** When the client ends it, as handlers do after the request's timeout. */
  readonly deadlineMs: number;
  wasSlow: boolean;
}

export class WatchClient {
  readonly #run: Run;
  readonly #random: Random;
  #interest: Interest;
  /** Where the next watch goes on; undefined: it begins with the present objects. */
  #position: number | undefined;
  #session: Session | undefined;

  constructor(run: Run, random: Random) {
    this.#run = run;
    this.#random = random;
    this.#interest = run.interest(random);
  }

  /** Watches until the run is over; the last watch goes on. */
  async watch(): Promise<void> {
    while (!this.#run.isOver) {
      if (this.#session === undefined) await this.#begin();
      await this.#run.pause(this.#random.below(100));
      if (this.#session !== undefined) this.#look(this.#session);
    }
  }

  /** At the end: the watch is there, and has sent everything and a bookmark. */
  async judgeEnd(): Promise<void> {
    for (let attempt = 0; attempt < 50 && !this.#isFollowing(); attempt++) {
      const session = this.#session;
      if (session !== undefined && session.deadlineMs < Number.POSITIVE_INFINITY) {
        session.recorder.watch.stop();
        this.#end(session);
      } else if (session?.recorder.ended !== undefined) {
        this.#end(session);
      }
      if (this.#session === undefined) await this.#begin();
      await this.#run.pause(100);
    }
    const { recorder, demand } = this.#session ?? {};
    if (recorder === undefined || demand === undefined || recorder.ended !== undefined) {
      this.#run.problem("a watch cannot be begun after all is healed");
      return;
    }
    const { problem, isComplete } = this.#judge(this.#session!);
    if (problem !== undefined) this.#run.problem(problem);
    else if (!isComplete) this.#run.problem(`a watch has not sent all: ${recorder.lines.join()}`);
    else this.#run.count("watches complete");
  }

  /** After more than a minute without a change there is a bookmark at the last revision. */
  judgeBookmark(): void {
    const { revision } = this.#run.history;
    const last = this.#session?.recorder.seen.at(-1);
    const starts = this.#session?.demand.after === revision;
    const isAsked = this.#session?.allowsBookmarks === true;
    if (isAsked && !starts && last?.revision !== revision)
      this.#run.problem(`the last is ${last?.type} ${last?.revision}, no bookmark ${revision}`);
    this.#session?.recorder.watch.stop();
  }

  #isFollowing(): boolean {
    const session = this.#session;
    if (session === undefined || session.recorder.ended !== undefined) return false;
    if (session.deadlineMs < Number.POSITIVE_INFINITY) return false;
    this.#hurry(session);
    return this.#judge(session).isComplete;
  }

  #hurry({ recorder }: Session): void {
    recorder.isSlow = false;
    recorder.watch.resume();
  }

  #look(session: Session): void {
    const { recorder } = session;
    if (recorder.ended !== undefined) {
      this.#end(session);
    } else if (this.#run.clock.monotonicMs() >= session.deadlineMs) {
      recorder.watch.stop();
      this.#end(session);
    } else if (this.#random.below(40) === 0) {
      recorder.watch.stop();
      this.#end(session);
      if (this.#random.below(2) === 0) {
        this.#interest = this.#run.interest(this.#random);
        this.#position = undefined;
      }
    } else if (!recorder.isSlow && !this.#run.isHealed && this.#random.below(15) === 0) {
      recorder.isSlow = true;
      session.wasSlow = true;
    } else if (recorder.isSlow && (this.#run.isHealed || this.#random.below(6) === 0)) {
      this.#hurry(session);
    } else if (recorder.isSlow && this.#random.below(3) === 0) {
      // Takes one event, and waits again.
      recorder.watch.resume();
    }
  }

  async #begin(): Promise<void> {
    const random = this.#random;
    const server = this.#run.server(random);
    const interest = this.#interest;
    const demand = this.#position === undefined ? this.#firstDemand() : this.#nextDemand();
    const { after, endsInitial, atLeast } = demand;
    const isLegacy = after === undefined && !endsInitial;
    const timeoutMs = this.#run.isOver ? undefined : 2100 + random.below(8000);
    const options: ListOptions = {
      resourceVersion: isLegacy
        ? pick(random, ["", "0"])
        : after === undefined
          ? ""
          : String(after),
      resourceVersionMatch: endsInitial ? "NotOlderThan" : "",
      sendInitialEvents: endsInitial ? true : undefined,
      recursive: interest.key.endsWith("/"),
      predicate: predicateOf(interest, { allowWatchBookmarks: !isLegacy }),
      progressNotify: random.below(5) === 0,
      timeoutMs,
    };
    try {
      const watch = await server.cacher.watch(interest.key, options);
      const { initializations } = server.cacher.metrics;
      const recorder = new Recorder(watch);
      const least = endsInitial ? atLeast : 0;
      this.#session = {
        server,
        demand: { ...demand, atLeast: least },
        recorder,
        initializations,
        allowsBookmarks: !isLegacy,
        deadlineMs: this.#run.clock.monotonicMs() + (timeoutMs ?? Number.POSITIVE_INFINITY),
        wasSlow: false,
      };
      this.#run.count("watches");
    } catch (error) {
      const code = expectedCode(error);
      if (!REFUSALS.has(code)) this.#run.problem(`a watch cannot begin: ${code}`);
    }
  }

  /** The present objects first, or a revision that a client may still know. */
  #firstDemand(): WatchDemand {
    const { history } = this.#run;
    const demand = { interest: this.#interest, atLeast: history.revision };
    switch (this.#random.below(3)) {
      case 0:
        return { ...demand, after: undefined, endsInitial: true };
      case 1:
        return { ...demand, after: undefined, endsInitial: false };
      default: {
        const after = Math.max(1, history.revision - this.#random.below(40));
        return { ...demand, after, endsInitial: false };
      }
    }
  }

  #nextDemand(): WatchDemand {
    const after = this.#position;
    return { interest: this.#interest, after, atLeast: 0, endsInitial: false };
  }

  #judge({ demand, recorder }: Session): Judgement {
    return judgeWatch(this.#run.history, demand, recorder.seen, recorder.initialEnds);
  }

  #end(session: Session): void {
    this.#session = undefined;
    const { recorder, demand } = session;
    const { problem, position } = this.#judge(session);
    if (problem !== undefined) this.#run.problem(problem);
    this.#position = position === 0 ? undefined : position;
    const { ended } = recorder;
    for (const { type } of recorder.seen) this.#run.count(type);
    if (ended === undefined) return;
    const wasRefilled =
      session.server.cacher.metrics.initializations !== session.initializations ||
      session.server.cacher.readiness() !== undefined;
    if (ended.error === undefined) {
      this.#run.count("watches ended");
      if (!session.wasSlow && !wasRefilled && recorder.seen.length > 0)
        this.#run.problem("a watch ended without a reason");
      return;
    }
    const { code } = ended.error;
    this.#run.count(`watches ended: ${code}`);
    if (code === "Expired") {
      this.#position = undefined;
      this.#judgeExpiry(session);
    } else if (!REFUSALS.has(code)) {
      this.#run.problem(`a watch ended with ${code}: ${ended.error.message}`);
    }
    if (demand.after === undefined) this.#position = undefined;
  }

  /** A revision is too old only if a window of events, or a new beginning, came after it. */
  #judgeExpiry({ server, demand }: Session): void {
    const later = this.#run.history.eventsAfter(demand.after ?? 0, EVERYTHING).length;
    const isNewer = (demand.after ?? 0) >= this.#run.startRevision;
    if (isNewer && later < LEAST_WINDOW && server.cacher.metrics.initializations === 1)
      this.#run.problem(`${demand.after} is too old, ${later} events later`);
  }
}

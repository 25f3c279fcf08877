/** Who acts on a cluster while it runs: clients, operators, those who do damage. */
import type { Random } from "@quorate/host";
import type { Exchanges } from "../exchanges.ts";
import type { Node } from "../node.ts";
import type { Story } from "../report/story.ts";
import type { SimOptions } from "./options.ts";
import type { Scheduler } from "./scheduler.ts";

export interface ActorDeps {
  readonly nodes: readonly Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  /** Of this actor alone: what it draws does not depend on what others do. */
  readonly random: Random;
  readonly network: Exchanges;
  /** Something is wrong. */
  fail(error: unknown): void;
}

/** Acts until it is stopped. */
export abstract class Actor<Deps extends Pick<ActorDeps, "random">, Options = SimOptions> {
  protected readonly options: Options;
  protected readonly deps: Deps;
  protected readonly random: Random;
  #isStopped = false;

  constructor(options: Options, deps: Deps) {
    this.options = options;
    this.deps = deps;
    this.random = deps.random;
  }

  protected get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Nothing more is begun; what is under way ends. */
  stop(): void {
    this.#isStopped = true;
  }
}

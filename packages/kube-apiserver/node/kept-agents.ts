/**
 * Agents with connections that are kept, one for each place that is called. Those of the place that
 * was used longest ago are closed first.
 */
import { keepNewest } from "@quorate/host";
import { defined } from "@quorate/proto";

/** Places with connections. */
export const MAX_KEPT_PLACES = 200;

/** @typeParam Agent node:https's, or undici's */
export class KeptAgents<Agent> {
  readonly #maxPlaces: number;
  readonly #retire: (agent: Agent) => void;
  /** In the order of their last use. */
  readonly #agents = new Map<string, Agent>();

  /** @param retire closes an agent whose calls may still be under way */
  constructor(retire: (agent: Agent) => void, maxPlaces: number = MAX_KEPT_PLACES) {
    this.#retire = retire;
    this.#maxPlaces = maxPlaces;
  }

  get size(): number {
    return this.#agents.size;
  }

  /** The agent of a place. @param place with all that makes connections different */
  of(place: readonly unknown[], make: () => Agent): Agent {
    const key = JSON.stringify(place);
    const agent = this.#agents.get(key) ?? make();
    this.#agents.delete(key);
    this.#agents.set(key, agent);
    keepNewest(this.#agents, this.#maxPlaces, (oldest) =>
      this.#retire(defined(this.#agents.get(oldest), "an agent")),
    );
    return agent;
  }

  /** All agents, which are kept no more. */
  takeAll(): Agent[] {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    return agents;
  }
}

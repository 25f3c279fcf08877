/** Clients that write, and check what becomes of their increments. */
import type { Random } from "@quorate/host";
import type { KubeObject } from "../../../src/meta/object.ts";
import { widget } from "../support/object.ts";
import { expectedCode, pick, type Run } from "./actor.ts";

const COUNTERS = ["/widgets/counters/one", "/widgets/counters/two"];
/** What a write may meet without a fault of the cache. */
const REFUSALS = new Set(["KeyExists", "KeyNotFound", "Unreachable", "Timeout"]);

/** Creates, changes and deletes objects until the run is over. */
export async function write(run: Run, random: Random): Promise<void> {
  while (!run.isOver) {
    const key = run.key(random);
    const { cacher } = run.server(random);
    try {
      switch (random.below(5)) {
        case 0:
          await cacher.delete(key);
          break;
        case 1:
          await cacher.create(key, widget(key, run.labels(random), run.spec(random)), 0);
          break;
        case 2:
          run.writeElsewhere();
          break;
        default:
          await cacher.guaranteedUpdate(
            key,
            () => ({ object: widget(key, run.labels(random), run.spec(random)) }),
            { ignoreNotFound: true },
          );
      }
      run.count("writes");
    } catch (error) {
      const code = expectedCode(error);
      if (!REFUSALS.has(code)) run.problem(`a write failed: ${code}`);
    }
    await run.pause(random.below(80));
  }
}

const countOf = (object: KubeObject | undefined) =>
  (object?.["spec"] as { count?: number } | undefined)?.count ?? 0;

/** Counts up shared counters; each success has to count once. */
export class Increments {
  readonly #acknowledged = new Map<string, number>();
  /** Those whose outcome is not known: a connection broke, or no response came in time. */
  readonly #unknown = new Map<string, number>();

  async increment(run: Run, random: Random): Promise<void> {
    while (!run.isOver) {
      const key = pick(random, COUNTERS);
      const { cacher } = run.server(random);
      try {
        const { resourceVersion } = await cacher.guaranteedUpdate(
          key,
          (present) => ({ object: widget(key, {}, { count: countOf(present) + 1 }) }),
          { ignoreNotFound: true },
        );
        if (resourceVersion > run.history.revision) run.problem("an update of the future");
        this.#acknowledged.set(key, (this.#acknowledged.get(key) ?? 0) + 1);
        run.count("increments");
      } catch (error) {
        const code = expectedCode(error);
        if (!REFUSALS.has(code)) run.problem(`an increment failed: ${code}`);
        if (code === "Timeout") this.#unknown.set(key, (this.#unknown.get(key) ?? 0) + 1);
      }
      await run.pause(random.below(150));
    }
  }

  judge(run: Run): void {
    for (const [key, acknowledged] of this.#acknowledged) {
      const count = countOf(run.history.present.get(key)?.object);
      const unknown = this.#unknown.get(key) ?? 0;
      if (count < acknowledged || count > acknowledged + unknown)
        run.problem(
          `${key} counts ${count} after ${acknowledged} acknowledged increments, ${unknown} unknown`,
        );
    }
  }
}

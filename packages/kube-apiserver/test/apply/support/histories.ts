/** Random histories of writes to one object, by several managers. */
import type { Dice } from "../../../../../test/support/random.ts";
import { randomThing } from "./random-values.ts";
import { openApiOf, THINGS } from "./thing.ts";

export interface Step {
  readonly op: "apply" | "update";
  readonly version: string;
  /** Which of the schemas counts: the earlier or the later one. */
  readonly schema: number;
  readonly manager: string;
  readonly subresource: string;
  readonly force: boolean;
  readonly object: Readonly<Record<string, unknown>>;
}

export interface HistoryCase {
  readonly type: "history";
  readonly history: {
    readonly schemas: readonly unknown[];
    readonly reset: Readonly<Record<string, unknown>>;
    readonly steps: readonly Step[];
  };
}

/** What the status endpoint resets. */
export const RESET = { "f:spec": {}, "f:metadata": { "f:labels": {} } };

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const MANAGERS = ["a", "b", "kubectl", ""];

export function historyCase(dice: Dice): HistoryCase {
  const count = 2 + dice.below(dice.chance(10) ? 18 : 5);
  const manyManagers = count > 10;
  const changesSchema = dice.chance(15);
  const steps = Array.from({ length: count }, (_, at): Step => {
    const version = dice.chance(80) ? "v1" : "v2";
    const op = manyManagers || dice.chance(45) ? "update" : "apply";
    const object = randomThing(dice, dice.chance(99) ? version : "v3");
    if (op === "update") decorate(dice, object, version);
    else if (dice.chance(2)) spoil(dice, object);
    return {
      op,
      version,
      schema: changesSchema && at >= count / 2 ? 1 : 0,
      manager: manyManagers ? `m${dice.below(15)}` : dice.pick(MANAGERS),
      subresource: dice.chance(10) ? "status" : "",
      force: dice.chance(50),
      object,
    };
  });
  const history = { schemas: THINGS.map(openApiOf), reset: RESET, steps };
  return { type: "history", history };
}

/** What clients write besides the object itself. */
function decorate(dice: Dice, object: Record<string, unknown>, version: string): void {
  object["apiVersion"] = `example.org/${version}`;
  const metadata = object["metadata"] as Record<string, unknown>;
  metadata["uid"] = "uid";
  if (dice.chance(15)) {
    const { uid: _, ...rest } = metadata;
    const annotations = { [LAST_APPLIED]: JSON.stringify({ ...object, metadata: rest }) };
    metadata["annotations"] = annotations;
  }
  if (dice.chance(3))
    metadata["managedFields"] = dice.pick<unknown>([[], [{}], [{ manager: "x" }]]);
}

/** Makes an object that does not fit its schema. */
function spoil(dice: Dice, object: Record<string, unknown>): void {
  const spec = dice.pick<unknown>([
    { unknown: 1 },
    { replicas: "1" },
    { paused: {} },
    { tags: ["a", "a"] },
    { containers: [{ image: "x" }] },
    { containers: [{ name: "a" }, { name: "a" }] },
    { containers: {} },
    { selector: [1] },
    { tags: [[]] },
    { nodes: [{ other: 1 }] },
  ]);
  object["spec"] = spec;
}

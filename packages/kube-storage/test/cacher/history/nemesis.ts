/** Faults: compactions, lost connections, slow networks, stores that are down. */
import type { Random } from "@quorate/host";
import { internalError } from "../../../src/meta/status.ts";
import { pick, type Run } from "./actor.ts";

export async function disturb(run: Run, random: Random): Promise<void> {
  while (!run.isOver && !run.isHealed) {
    await run.pause(200 + random.below(1500));
    if (run.isHealed) return;
    const { connection } = run.server(random);
    switch (random.below(6)) {
      case 0:
      case 1:
        run.compact(run.history.revision - random.below(20));
        run.count("compactions");
        break;
      case 2:
      case 3:
        connection.loseConnections(pick(random, [undefined, internalError("connection lost")]));
        run.count("connections lost");
        break;
      case 4:
        connection.delays = { callMs: random.below(60), eventMs: random.below(400) };
        break;
      default:
        connection.isDown = true;
        connection.loseConnections(internalError("connection lost"));
        run.count("stores down");
        await run.pause(random.below(4000));
        connection.isDown = false;
    }
  }
}

/** Everything works, quickly, from now on. */
export function heal(run: Run): void {
  run.isHealed = true;
  for (const { connection } of run.servers) {
    connection.isDown = false;
    connection.delays = { callMs: 2, eventMs: 2 };
  }
}

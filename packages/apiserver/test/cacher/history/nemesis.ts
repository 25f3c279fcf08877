/** Faults: compactions, lost connections, slow networks, stores that are down. */
import type { Random } from "@quorate/host";
import { internalError } from "../../../src/meta/status.ts";
import { pick, type Run } from "./actor.ts";

export async function disturb(run: Run, random: Random): Promise<void> {
  while (!run.isOver && !run.isHealed) {
    await run.pause(200 + random.below(1500));
    const { storage } = run.server(random);
    switch (random.below(6)) {
      case 0:
      case 1:
        run.history.compactRevision = Math.max(
          run.history.compactRevision,
          run.history.revision - random.below(20),
        );
        for (const server of run.servers) server.storage.compacted(run.history.compactRevision);
        run.count("compactions");
        break;
      case 2:
      case 3:
        storage.loseConnections(pick(random, [undefined, internalError("connection lost")]));
        run.count("connections lost");
        break;
      case 4:
        storage.delays = { callMs: random.below(60), eventMs: random.below(400) };
        break;
      default:
        storage.isDown = true;
        storage.loseConnections(internalError("connection lost"));
        run.count("stores down");
        await run.pause(random.below(4000));
        storage.isDown = false;
    }
  }
}

/** Everything works, quickly, from now on. */
export function heal(run: Run): void {
  run.isHealed = true;
  for (const { storage } of run.servers) {
    storage.isDown = false;
    storage.delays = { callMs: 2, eventMs: 2 };
  }
}

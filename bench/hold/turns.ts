/** The longest turns of a member's event loop, as its probe (probe.ts) has seen them. */
import { spawnSync } from "node:child_process";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The socket at which the probe of the member with this name responds. */
export const probeSocket = (name: string): string =>
  join(tmpdir(), `quorate-hold-${process.pid}-${name}.sock`);

/**
 * The longest turn of a member's loop: wall-clock and processor time; its longest pause for
 * garbage. NaN: the program does not say.
 */
export interface Turns {
  readonly wallMs: number;
  readonly pauseMs: number;
  readonly cpuMs: number;
  readonly ownMs: number;
  /** What the longest turns did. */
  readonly profile: string;
}

/** Since it was asked last. */
export function longestTurn(path: string): Promise<Turns> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(path);
    socket.on("data", (bytes) => {
      text += bytes;
    });
    socket.on("end", () => {
      const [figures, ...profile] = text.split("\n");
      const [wallMs, cpuMs, ownMs, pauseMs] = figures.split(" ").map(Number) as number[];
      resolve({ wallMs, cpuMs, ownMs, pauseMs, profile: profile.join("\n") });
    });
    socket.on("error", () =>
      resolve({
        wallMs: Number.NaN,
        cpuMs: Number.NaN,
        ownMs: Number.NaN,
        pauseMs: Number.NaN,
        profile: "",
      }),
    );
  });
}

/**
 * Keeps a process's main thread on one processor: the clocks of processors differ, so that a thread
 * which moves between them many times is counted too much processor time.
 */
export function pin(pid: number): void {
  const { status } = spawnSync("taskset", ["-p", "-c", "0", String(pid)]);
  if (status !== 0) console.error("taskset is missing: processor time of turns is less exact");
}

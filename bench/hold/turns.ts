/** The longest turns of a member's event loop, as its probe (probe.ts) has seen them. */
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
  /** What was collected in the longest pause. */
  readonly pauseOf: string;
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
      const words = figures.split(" ");
      const [wallMs, cpuMs, ownMs, pauseMs] = words.map(Number);
      resolve({ wallMs, cpuMs, ownMs, pauseMs, pauseOf: words[4], profile: profile.join("\n") });
    });
    socket.on("error", () =>
      resolve({
        wallMs: Number.NaN,
        cpuMs: Number.NaN,
        ownMs: Number.NaN,
        pauseMs: Number.NaN,
        pauseOf: "",
        profile: "",
      }),
    );
  });
}

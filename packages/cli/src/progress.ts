/**
 * A progress line on the terminal. Without a terminal on standard error nothing is shown.
 */
import { humanBytes } from "./go-format.ts";
import type { Io } from "./io.ts";

const BAR_COLUMNS = 30;
/** Shortest interval between redraws. */
const DRAW_INTERVAL_NS = 100_000_000n;

export class Progress {
  readonly #io: Io;
  readonly #label: string;
  #drawnNs: bigint | undefined;

  constructor(io: Io, label: string) {
    this.#io = io;
    this.#label = label;
  }

  /** @param shown the text of the total; default in bytes */
  update(bytes: number, totalBytes: number, shown = humanBytes(totalBytes)): void {
    if (!this.#io.stderrIsTerminal) return;
    const nowNs = this.#io.nowNs();
    if (
      this.#drawnNs !== undefined &&
      nowNs - this.#drawnNs < DRAW_INTERVAL_NS &&
      bytes < totalBytes
    )
      return;
    this.#drawnNs = nowNs;
    const share = totalBytes === 0 ? 1 : Math.min(1, bytes / totalBytes);
    const full = Math.floor(share * BAR_COLUMNS);
    const bar = "█".repeat(full) + "░".repeat(BAR_COLUMNS - full);
    this.#io.stderr(
      `\r${this.#label} ${bar} ${String(Math.floor(share * 100)).padStart(3)}% of ${shown} `,
    );
  }

  /** Ends the line, if there is one. */
  end(): void {
    if (this.#drawnNs !== undefined) this.#io.stderr("\n");
    this.#drawnNs = undefined;
  }
}

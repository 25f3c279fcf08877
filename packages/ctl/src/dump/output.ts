/** Buffers standard output for very many short lines. */
import type { Io } from "@quorate/cli";

/** Most buffered characters. */
export const MAX_HELD_CHARS = 65_536;

export class LineOutput {
  readonly #io: Pick<Io, "stdout">;
  #held = "";

  constructor(io: Pick<Io, "stdout">) {
    this.#io = io;
  }

  write(text: string): void {
    this.#held += text;
    if (this.#held.length >= MAX_HELD_CHARS) this.flush();
  }

  /** Writes the rest. Call at the end, also after a failure. */
  flush(): void {
    if (this.#held !== "") this.#io.stdout(this.#held);
    this.#held = "";
  }
}

/** Standard output for very many short lines: they leave in pieces. */
import type { Io } from "../io.ts";

/** Characters that are held at the most. */
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

  /** To be called at the end, however that comes. */
  flush(): void {
    if (this.#held !== "") this.#io.stdout(this.#held);
    this.#held = "";
  }
}

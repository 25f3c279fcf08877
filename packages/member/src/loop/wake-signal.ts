/** Asks for a turn of the loop, for the queues in front of it: they are built before the loop. */
export class WakeSignal {
  #listener: (() => void) | undefined;

  /** @param listener sees to it that a turn follows */
  listen(listener: () => void): void {
    this.#listener = listener;
  }

  readonly wake = (): void => this.#listener?.();
}

/**
 * Connections that wait for their TLS handshake. Each takes most of a millisecond of the thread,
 * and Node does one for every connection that has sent its first bytes before anything else has its
 * turn: a thousand clients that come back at once would hold up all others for a second. So a few
 * are begun in a turn of the event loop, in the order in which they came. The bytes of those that
 * wait are in the kernel.
 */

/** Handshakes that are begun in one turn, some 3 ms. */
export const MAX_HANDSHAKES_A_TURN = 4;

export class HandshakeLine {
  #waiting: (() => void)[] = [];
  #begun = 0;
  #isSet = false;

  /** Has a handshake begun, now or in a later turn. */
  add(begin: () => void): void {
    if (!this.#isSet) {
      this.#isSet = true;
      setImmediate(this.#nextTurn);
    }
    if (this.#begun < MAX_HANDSHAKES_A_TURN) {
      this.#begun++;
      begin();
    } else this.#waiting.push(begin);
  }

  readonly #nextTurn = (): void => {
    const due = this.#waiting.slice(0, MAX_HANDSHAKES_A_TURN);
    this.#waiting = this.#waiting.slice(due.length);
    this.#begun = due.length;
    this.#isSet = due.length > 0;
    if (this.#isSet) setImmediate(this.#nextTurn);
    for (const begin of due) begin();
  };
}

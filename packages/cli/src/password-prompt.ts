/**
 * Reads passwords from standard input as etcdctl does: from a terminal without showing what is
 * typed, from a pipe a line for each prompt (`printf 'pw\npw\n' | quoratectl user add name`).
 */

/** Standard input, as far as a prompt needs it; process.stdin is one. */
export interface PasswordInput {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
  on(event: "data", listener: (piece: Uint8Array) => void): unknown;
  on(event: "end" | "error", listener: () => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

const INTERRUPT = 0x03;
const END_OF_INPUT = 0x04;
const BACKSPACES = new Set([0x08, 0x7f]);
const LINE_ENDS = new Set([0x0a, 0x0d]);

/** The longest line that is taken, in bytes; bcrypt looks at 72. */
export const MAX_PASSWORD_BYTES = 4096;

/**
 * A function that asks for one line. A second prompt continues where the first one stopped reading,
 * so that a pipe can hold the answers of several prompts.
 * @param write shows the prompt, and the end of the line that was typed unseen
 * @returns a function that resolves with the line, with what there was at the end of input; it
 *   rejects with Error "interrupted" at control-C, and for a line over MAX_PASSWORD_BYTES
 */
export function passwordPrompt(
  input: PasswordInput,
  write: (text: string) => void,
): (prompt: string) => Promise<string> {
  const source = new Pieces(input);
  let rest: Uint8Array = new Uint8Array(0);
  return async (prompt) => {
    const isTerminal = input.isTTY === true;
    if (isTerminal) input.setRawMode?.(true);
    write(prompt);
    try {
      const line: number[] = [];
      for (let isComplete = false; !isComplete; ) {
        const taken = takeLine(rest, line, isTerminal);
        rest = rest.subarray(taken.bytes);
        if (taken.error !== undefined) throw new Error(taken.error);
        isComplete = taken.isComplete;
        if (isComplete) break;
        const piece = await source.next();
        isComplete = piece === undefined;
        rest = piece ?? rest;
      }
      return new TextDecoder().decode(Uint8Array.from(line));
    } finally {
      if (isTerminal) input.setRawMode?.(false);
      write("\n");
    }
  };
}

interface Taken {
  readonly bytes: number;
  readonly isComplete: boolean;
  readonly error?: string;
}

/** Moves bytes to `line`, up to its end. */
function takeLine(bytes: Uint8Array, line: number[], isTerminal: boolean): Taken {
  for (const [i, byte] of bytes.entries()) {
    const taken = { bytes: i + 1, isComplete: true };
    if (byte === 0x0a || (isTerminal && LINE_ENDS.has(byte))) {
      if (line.at(-1) === 0x0d) line.pop();
      return taken;
    }
    if (isTerminal && byte === INTERRUPT) return { ...taken, error: "interrupted" };
    if (isTerminal && byte === END_OF_INPUT) return taken;
    if (isTerminal && BACKSPACES.has(byte)) dropCharacter(line);
    else line.push(byte);
    if (line.length > MAX_PASSWORD_BYTES) return { ...taken, error: "the password is too long" };
  }
  return { bytes: bytes.length, isComplete: false };
}

/** Takes the last character away, all bytes of it. */
function dropCharacter(line: number[]): void {
  while (((line.pop() ?? 0) & 0xc0) === 0x80);
}

/**
 * What arrives at standard input. It flows while a prompt waits, and keeps no process alive else.
 */
class Pieces {
  readonly #input: PasswordInput;
  readonly #waiting: Uint8Array[] = [];
  #isEnded = false;
  #isOpen = false;
  #wake: () => void = () => {};

  constructor(input: PasswordInput) {
    this.#input = input;
  }

  /** The next piece, or undefined at the end of input. */
  async next(): Promise<Uint8Array | undefined> {
    this.#open();
    if (this.#waiting.length === 0 && !this.#isEnded) {
      const arrived = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#input.resume();
      await arrived;
      this.#input.pause();
    }
    return this.#waiting.shift();
  }

  /** Listens, from the first prompt to the end: an end between two prompts must not be missed. */
  #open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#input.on("data", (piece) => {
      this.#waiting.push(piece);
      this.#wake();
    });
    const end = (): void => {
      this.#isEnded = true;
      this.#wake();
    };
    this.#input.on("end", end);
    this.#input.on("error", end);
  }
}

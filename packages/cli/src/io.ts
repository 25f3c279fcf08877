/** The platform interface of commands. process-io.ts implements it; tests have a fake. */

/** The terminal that a command draws on. */
export interface Terminal {
  /** The current size in characters. */
  size(): { readonly columns: number; readonly rows: number };
  /**
   * Whether output is pending: the terminal is slow or stopped (Ctrl-S).
   */
  isBehind(): boolean;
  /**
   * Switches to the alternate screen, without a cursor. Returns the function that switches back; so
   * does the end of the process.
   */
  enter(): () => void;
  /** Calls `changed` when the size changes. Returns the function that unsubscribes. */
  onResize(changed: () => void): () => void;
  /**
   * Calls `typed` with each key (an arrow as its escape sequence), without echo. Returns the
   * function that unsubscribes, or undefined where standard input is no terminal.
   */
  onKey(typed: (key: string) => void): (() => void) | undefined;
}

export interface Io {
  /** Texts are written as UTF-8, bytes as they are. */
  stdout(content: string | Uint8Array): void;
  stderr(text: string): void;
  /** Whether standard error is a terminal, so that progress may be drawn there. */
  readonly stderrIsTerminal: boolean;
  /** The terminal behind standard output; absent in a pipe or file. */
  readonly terminal?: Terminal | undefined;
  /** Standard input in chunks. */
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * A file's bytes. Throws an Error whose message is the system's reason ("no such file or
   * directory").
   */
  readFile(path: string): Uint8Array;
  /** Monotonic time in nanoseconds. */
  nowNs(): bigint;
  sleep(delayMs: number): Promise<void>;
  /**
   * Calls `stop` on SIGINT and SIGTERM, instead of ending. Returns the function that unsubscribes.
   */
  onStop(stop: (signal: StopSignal) => void): () => void;
  /**
   * Starts a program with exactly these variables. It inherits standard output and error; its
   * standard input is empty.
   */
  run(command: readonly string[], env: Readonly<Record<string, string | undefined>>): ChildRun;
  /** Reads a line without echo from a terminal; from a pipe, the next line. */
  askPassword(prompt: string): Promise<string>;
}

export type StopSignal = "SIGINT" | "SIGTERM";

/** A started program. */
export interface ChildRun {
  readonly ended: Promise<ChildEnd>;
  kill(signal: StopSignal): void;
}

/** How a program ended. */
export interface ChildEnd {
  /** The exit code; 255 after a signal, 1 if it could not be started. */
  readonly code: number;
  /** Go's text for the error; undefined for code 0. */
  readonly error: string | undefined;
}

/** etcdctl's exit codes. */
export const ExitCode = {
  success: 0,
  error: 1,
  badConnection: 2,
  invalidInput: 3,
  badFeature: 4,
  interrupted: 5,
  badArguments: 128,
} as const;

/**
 * The system's reason in an error of Node: "no such file or directory" in "ENOENT: no such file or
 * directory, open 'x'".
 */
export function systemReason(error: unknown): string {
  const { message } = error as Error;
  return /^[A-Z]+: ([^,]+)/.exec(message)?.[1] ?? message;
}

/** Ends the program with a code; the message, if any, goes to standard error after "Error: ". */
export class Exit extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "Exit";
    this.code = code;
  }
}

/** The Exit of a command line that is wrong. */
export function badArguments(message: string): Exit {
  return new Exit(ExitCode.badArguments, message);
}

/**
 * The Exit of a command that a signal ends, with the exit code that shells report for the signal.
 */
export function stoppedBy(signal: StopSignal): Exit {
  return new Exit(signal === "SIGINT" ? 130 : 143, "");
}

/**
 * Runs `task` until it ends. On SIGINT or SIGTERM calls `stop`, and throws the signal's Exit after
 * `task` has ended.
 */
export async function untilStopped<T>(
  io: Io,
  stop: () => void,
  task: () => Promise<T>,
): Promise<T> {
  let end: Exit | undefined;
  const forget = io.onStop((signal) => {
    end = stoppedBy(signal);
    stop();
  });
  try {
    const result = await task();
    if (end !== undefined) throw end;
    return result;
  } finally {
    forget();
  }
}

/** Reads lines from chunks of bytes. */
export class LineReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** The next line without its end, or undefined if the input ends before one is complete. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      const piece = await this.#pieces.next();
      if (piece.done === true) return undefined;
      this.#text += this.#decoder.decode(piece.value, { stream: true });
    }
  }

  /** Stops reading, so that the process can end while the input is open. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

/** All of standard input. */
export async function readAll(io: Io): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of io.stdin) pieces.push(piece);
  return new Uint8Array(Buffer.concat(pieces));
}

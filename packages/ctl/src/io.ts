/** The world as a command sees it. The real one is in process-io.ts; tests bring their own. */

/** A terminal that a command draws on. */
export interface Terminal {
  /** Its size in characters at this moment. */
  size(): { readonly columns: number; readonly rows: number };
  /**
   * Whether it has not taken yet what was written: a slow line, or one that is stopped (control-S).
   */
  isBehind(): boolean;
  /**
   * Takes a screen of its own, without a cursor, until the function it gives is called or the
   * process ends in whatever way it can tell.
   */
  enter(): () => void;
  /** Calls back when its size has changed, until the function it gives is called. */
  onResize(changed: () => void): () => void;
  /**
   * Calls back with each key as it is typed (an arrow as its escape sequence), without echo, until
   * the function it gives is called; undefined where nobody can type.
   */
  onKey(typed: (key: string) => void): (() => void) | undefined;
}

export interface Io {
  /** Texts are written as UTF-8, bytes as they are. */
  stdout(content: string | Uint8Array): void;
  stderr(text: string): void;
  /** Whether somebody watches standard error, so that progress may be drawn there. */
  readonly stderrIsTerminal: boolean;
  /** The terminal behind standard output; absent where that goes elsewhere. */
  readonly terminal?: Terminal | undefined;
  /** Standard input in pieces, to its end. */
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
   * Calls `stop` instead of ending when the program is asked to end (SIGINT, SIGTERM), until the
   * function it gives is called.
   */
  onStop(stop: (signal: StopSignal) => void): () => void;
  /**
   * Starts another program with exactly these variables; it writes where this one writes, and there
   * is nothing for it to read.
   */
  run(command: readonly string[], env: Readonly<Record<string, string | undefined>>): ChildRun;
  /** Asks for a line without showing what is typed; from a pipe, it takes the next line of it. */
  askPassword(prompt: string): Promise<string>;
}

export type StopSignal = "SIGINT" | "SIGTERM";

/** A program that was started. */
export interface ChildRun {
  readonly ended: Promise<ChildEnd>;
  kill(signal: StopSignal): void;
}

/** How a program ended. */
export interface ChildEnd {
  /** 255 if a signal ended it, 1 if it could not be started. */
  readonly code: number;
  /** In Go's words, or undefined for code 0. */
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
 * The system's reason in an error of Node's: "no such file or directory" of "ENOENT: no such file
 * or directory, open 'x'".
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

/**
 * A signal's end of what would go on for ever: the code that a shell gives to a process that the
 * signal ended.
 */
export function stoppedBy(signal: StopSignal): Exit {
  return new Exit(signal === "SIGINT" ? 130 : 143, "");
}

/**
 * Runs `task` until it ends, or until SIGINT or SIGTERM, which `stop` is told of; then that ends
 * the program.
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

/** Reads lines from pieces of bytes. */
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

  /** Lets the input go, so that the process can end while it is still open. */
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

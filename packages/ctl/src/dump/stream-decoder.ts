/**
 * Runs a user's program that decodes entries: it reads each as a line in hexadecimal and prints a
 * line "status|decoded data".
 *
 *     quorateutl dump-logs --stream-decoder "my-decoder --with flags" DIR
 */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { Exit, ExitCode, LineReader } from "@quorate/cli";

export class StreamDecoder {
  readonly #command: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: LineReader;
  readonly #ended: Promise<number>;
  #stderr = "";
  #failure: Error | undefined;

  /** Starts the program; single spaces separate the words of `command`. */
  constructor(command: string) {
    this.#command = command;
    const [program, ...args] = command.split(" ");
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.on("error", (error) => {
      this.#failure = error;
    });
    // A program that ends early is detected by its missing line.
    this.#child.stdin.on("error", () => {});
    this.#child.stderr.on("data", (piece: Buffer) => {
      this.#stderr += piece.toString();
    });
    this.#lines = new LineReader(this.#child.stdout);
    this.#ended = once(this.#child, "close").then(
      ([code]) => (code as number | null) ?? -1,
      () => -1,
    );
  }

  /** "status\tdata" of an entry. Throws Exit if the program prints no line. */
  async decode(data: Uint8Array): Promise<string> {
    this.#child.stdin.write(`${Buffer.from(data).toString("hex")}\n`);
    const line = await this.#lines.next();
    if (line === undefined) {
      const code = await this.#ended;
      const why =
        this.#failure?.message ??
        `it ended with code ${code}${this.#stderr === "" ? "" : ` and said: ${this.#stderr.trim()}`}`;
      throw new Exit(
        ExitCode.error,
        `the decoder ${JSON.stringify(this.#command)} printed no line for an entry: ${why}`,
      );
    }
    const [status, ...rest] = line.split("|");
    if (rest.length === 0)
      return `decoder output format is not right, print output anyway\t${line}`;
    if (rest.length === 1) return `${status}\t${rest[0]}`;
    return `${status}(*WARNING: data might contain deliminator used by etcd-dump-logs)\t${rest.join("")}`;
  }

  /** Ends the program; returns its standard error. Throws Exit if it failed. */
  async close(): Promise<string> {
    this.#child.stdin.end();
    const code = await this.#ended;
    if (code !== 0)
      throw new Exit(
        ExitCode.error,
        `the decoder ${JSON.stringify(this.#command)} ended with code ${code}: ${this.#stderr.trim()}`,
      );
    return this.#stderr;
  }

  /** Kills the program, if it still runs. */
  kill(): void {
    this.#child.kill();
  }
}

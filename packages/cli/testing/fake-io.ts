/** A fake Io: configured input, recorded output. */
import type { Io } from "../src/io.ts";

export class FakeIo implements Io {
  readonly env: Record<string, string | undefined> = {};
  readonly files: Record<string, Uint8Array> = {};
  readonly sleeps: number[] = [];
  stderrIsTerminal = false;
  input = "";
  readonly #out: Uint8Array[] = [];
  #err = "";

  get stdin(): AsyncIterable<Uint8Array> {
    return pieces(Buffer.from(this.input, "latin1"));
  }

  /** Standard output in latin1, one char per byte. */
  get outBytes(): string {
    return Buffer.concat(this.#out).toString("latin1");
  }

  get out(): string {
    return Buffer.concat(this.#out).toString("utf8");
  }

  get err(): string {
    return this.#err;
  }

  stdout(content: string | Uint8Array): void {
    this.#out.push(typeof content === "string" ? Buffer.from(content) : content);
  }

  stderr(text: string): void {
    this.#err += text;
  }

  readFile(path: string): Uint8Array {
    const file = this.files[path];
    if (file === undefined) throw new Error("no such file or directory");
    return file;
  }

  nowNs(): bigint {
    return process.hrtime.bigint();
  }

  async sleep(delayMs: number): Promise<void> {
    this.sleeps.push(delayMs);
  }

  run(): never {
    throw new Error("no program is to be run");
  }

  onStop(): () => void {
    return () => {};
  }

  askPassword(): Promise<string> {
    return Promise.reject(new Error("there is no terminal to ask for the password on"));
  }
}

/** Seven bytes at a time, so that lines and characters are cut in two. */
async function* pieces(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
}

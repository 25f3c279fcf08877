/** An object store in memory, which a test lets fail. */
import {
  type Content,
  type ObjectStore,
  ObjectStoreError,
  type StoredObject,
} from "@quorate/backup";

export class MemoryObjects implements ObjectStore {
  readonly place = "s3://memory/";
  objects = new Map<string, Uint8Array>();
  /** The operations so far, such as "put NAME". */
  readonly log: string[] = [];
  /** Called before each operation; may throw. */
  before: (operation: string) => void = () => {};

  #begin(operation: string): void {
    this.log.push(operation);
    this.before(operation);
  }

  async list(): Promise<StoredObject[]> {
    this.#begin("list");
    return [...this.objects].map(([name, { length }]) => ({ name, sizeBytes: length }));
  }

  async put(name: string, sizeBytes: number, content: Content): Promise<void> {
    this.#begin(`put ${name}`);
    const chunks: Uint8Array[] = [];
    for await (const chunk of content()) chunks.push(chunk);
    const bytes = new Uint8Array(Buffer.concat(chunks));
    if (bytes.length !== sizeBytes) throw new Error(`${name} has ${bytes.length} bytes`);
    this.objects.set(name, bytes);
  }

  async *get(name: string): AsyncGenerator<Uint8Array> {
    this.#begin(`get ${name}`);
    const bytes = this.objects.get(name);
    if (bytes === undefined) throw new ObjectStoreError("Missing", name, "there is none");
    for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
  }

  async remove(name: string): Promise<void> {
    this.#begin(`remove ${name}`);
    this.objects.delete(name);
  }

  async close(): Promise<void> {}
}

/** Programs that serve, and those that look for them. */
import { Cache, type Client, type Session, toUtf8 } from "@quorate/client";

const prefixOf = (service: string): string => `services/${service}/`;

/** Announces an address for as long as the session lasts. */
export async function announce(
  client: Client,
  session: Session,
  service: string,
  address: string,
): Promise<void> {
  await client.put(`${prefixOf(service)}${session.lease}`, address, { lease: session.lease });
}

/** The addresses of a service, kept in memory. */
export class Directory implements AsyncDisposable {
  readonly #cache: Cache;
  #turn = 0;

  private constructor(cache: Cache) {
    this.#cache = cache;
  }

  static async of(client: Client, service: string): Promise<Directory> {
    return new Directory(await Cache.open(client, prefixOf(service), { prefix: true }));
  }

  get addresses(): string[] {
    return [...this.#cache.records()].map(({ value }) => toUtf8(value)).sort();
  }

  /** One after the other in turn. Throws where nobody serves. */
  next(): string {
    const { addresses } = this;
    const address = addresses[this.#turn++ % addresses.length];
    if (address === undefined) throw new Error("nobody serves now");
    return address;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cache[Symbol.asyncDispose]();
  }
}

/**
 * The wires between members: TCP proxies that hurt what goes through them.
 *
 * Each member advertises the address of its proxy to the others. A connection that member `a` opens
 * to member `b` goes
 *
 *     a --> proxy of b --> b        bytes from a to b obey wire a>b, bytes from b to a obey wire
 *                                   b>a
 *
 * so that faults affect one direction of a pair, whichever side opened the connection. Who opened
 * it is asked of the kernel (owner.ts), since what goes through is TLS and says nothing.
 *
 * A wire that is stalled takes no more bytes, and delivers all when it goes on. A blackhole does
 * the same, but what stood in it is lost: its connections are reset when it ends. A cut wire resets
 * its connections and every new one. No wire holds more than MAX_HELD_BYTES of a connection: beyond
 * that nothing is read from the sender, whose kernel then makes it wait.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** What one direction of one connection holds at the most. */
export const MAX_HELD_BYTES = 256 * 1024;
/** What a throttled wire lets through at a time. */
const SLICE_BYTES = 16 * 1024;

export type WireState = "open" | "stalled" | "blackhole" | "cut";

/** What happens to bytes on the way from one member to another. */
export interface WireCondition {
  readonly state: WireState;
  readonly delayMs: number;
  /** Up to so much more, by chance; order is kept. */
  readonly jitterMs: number;
  /** 0 for no limit. */
  readonly bytesPerSecond: number;
}

export const OPEN_WIRE: WireCondition = {
  state: "open",
  delayMs: 0,
  jitterMs: 0,
  bytesPerSecond: 0,
};

/** One direction between two members. */
export class Wire {
  readonly name: string;
  #condition = OPEN_WIRE;
  readonly #pumps = new Set<Pump>();
  /** Bytes that have gone through. */
  passedBytes = 0;

  constructor(name: string) {
    this.name = name;
  }

  get condition(): WireCondition {
    return this.#condition;
  }

  set(condition: WireCondition): void {
    const before = this.#condition;
    this.#condition = condition;
    for (const pump of [...this.#pumps]) {
      const isLost =
        condition.state === "cut" ||
        (before.state === "blackhole" && condition.state !== "blackhole");
      if (isLost) pump.reset();
      else pump.go();
    }
  }

  add(pump: Pump): void {
    this.#pumps.add(pump);
  }

  delete(pump: Pump): void {
    this.#pumps.delete(pump);
  }

  /** Most bytes that one connection holds now. */
  get heldBytes(): number {
    return Math.max(0, ...[...this.#pumps].map((pump) => pump.heldBytes));
  }
}

/** Moves bytes from one socket to another along a wire. */
class Pump {
  readonly #wire: Wire;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #held: { bytes: Buffer; dueMs: number }[] = [];
  #heldBytes = 0;
  #ended = false;
  #isWaiting = false;
  #timer: NodeJS.Timeout | undefined;
  #lastDueMs = 0;
  /** When a throttled wire may go on. */
  #freeMs = 0;

  constructor(wire: Wire, from: Socket, to: Socket) {
    this.#wire = wire;
    this.#from = from;
    this.#to = to;
    wire.add(this);
    from.on("data", (bytes) => this.#take(bytes as Buffer));
    from.on("end", () => {
      this.#ended = true;
      this.go();
    });
    to.on("drain", () => {
      this.#isWaiting = false;
      this.go();
    });
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  #take(bytes: Buffer): void {
    const { delayMs, jitterMs } = this.#wire.condition;
    // Not before the one ahead of it: TCP keeps the order.
    this.#lastDueMs = Math.max(
      this.#lastDueMs,
      performance.now() + delayMs + Math.random() * jitterMs,
    );
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      this.#held.push({ bytes: bytes.subarray(at, at + SLICE_BYTES), dueMs: this.#lastDueMs });
    }
    this.#heldBytes += bytes.length;
    if (this.#heldBytes >= MAX_HELD_BYTES) this.#from.pause();
    this.go();
  }

  /** Sends what may go now. */
  go(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { state, bytesPerSecond } = this.#wire.condition;
    if (state !== "open" || this.#isWaiting || this.#to.destroyed) return;
    for (;;) {
      const first = this.#held[0];
      if (first === undefined) break;
      const nowMs = performance.now();
      const dueMs = bytesPerSecond > 0 ? Math.max(first.dueMs, this.#freeMs) : first.dueMs;
      if (dueMs > nowMs) {
        this.#timer = setTimeout(() => this.go(), dueMs - nowMs);
        return;
      }
      this.#held.shift();
      this.#heldBytes -= first.bytes.length;
      this.#wire.passedBytes += first.bytes.length;
      if (bytesPerSecond > 0) this.#freeMs = nowMs + (first.bytes.length * 1000) / bytesPerSecond;
      if (this.#heldBytes < MAX_HELD_BYTES && this.#from.isPaused()) this.#from.resume();
      if (!this.#to.write(first.bytes)) {
        this.#isWaiting = true;
        return;
      }
    }
    if (this.#ended) this.#to.end();
  }

  /** Breaks the connection off. */
  reset(): void {
    this.#from.resetAndDestroy();
    this.#to.resetAndDestroy();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#wire.delete(this);
    this.#held.length = 0;
    this.#heldBytes = 0;
  }
}

/** Says which member opened a connection from that local port; undefined if none did. */
export type OwnerOf = (port: number) => string | undefined;

/** All the wires between members, and the proxies that they go through. */
export class Wires {
  readonly #wires = new Map<string, Wire>();
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #ownerOf: OwnerOf;
  /** Connections that were let through. */
  accepted = 0;

  constructor(names: readonly string[], ownerOf: OwnerOf) {
    this.#ownerOf = ownerOf;
    for (const a of names)
      for (const b of names) if (a !== b) this.#wires.set(`${a}>${b}`, new Wire(`${a}>${b}`));
  }

  wire(from: string, to: string): Wire {
    return this.#wires.get(`${from}>${to}`)!;
  }

  get all(): readonly Wire[] {
    return [...this.#wires.values()];
  }

  /**
   * The proxy of one member: listens on a port of 127.0.0.1 and passes on to another. Rejects if
   * the port is taken.
   */
  async open(name: string, listenPort: number, targetPort: number): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (socket) =>
      this.#accept(name, targetPort, socket),
    );
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(listenPort, "127.0.0.1", resolve);
    });
  }

  #accept(to: string, targetPort: number, inside: Socket): void {
    const from = this.#ownerOf(inside.remotePort ?? 0);
    const there = from === undefined ? undefined : this.#wires.get(`${from}>${to}`);
    const back = from === undefined ? undefined : this.#wires.get(`${to}>${from}`);
    inside.on("error", () => {});
    if (
      there === undefined ||
      back === undefined ||
      there.condition.state === "cut" ||
      back.condition.state === "cut"
    ) {
      inside.resetAndDestroy();
      return;
    }
    this.accepted++;
    const outside = connect({
      port: targetPort,
      host: "127.0.0.1",
      allowHalfOpen: true,
      noDelay: true,
    });
    inside.setNoDelay(true);
    outside.on("error", () => {});
    const pumps = [new Pump(there, inside, outside), new Pump(back, outside, inside)];
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("close", (hadError) => {
        this.#sockets.delete(socket);
        for (const pump of pumps) pump.close();
        if (hadError || !other.writableEnded) other.resetAndDestroy();
      });
    }
  }

  /** All wires as good as new. */
  heal(): void {
    for (const wire of this.#wires.values()) if (wire.condition !== OPEN_WIRE) wire.set(OPEN_WIRE);
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * A place to listen on, bound before anybody answers there (etcd: configureClientListeners). A
 * client that comes early waits for its answer, as in the kernel's queue of an etcd that starts.
 *
 *     openDoor -> held: connections wait unread -> serve: handed over, the oldest first
 *              \-> refused: connections are closed
 *
 * Held connections have a limit. Beyond it, the oldest one of the address that has the most is
 * closed.
 */
import { lstatSync, unlinkSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { ConnectionSlots } from "../src/connection-slots.ts";
import { hostOf } from "./socket-address.ts";

/** Where to listen: a host and port (0 for a free one), or the path of a unix socket. */
export interface DoorAddress {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  /** SO_REUSEPORT: other processes may listen on the same port. */
  readonly reusePort?: boolean | undefined;
}

/** What happens to connections that come before somebody serves. */
export type EarlyConnections = "hold" | "refuse";

/** Takes connections. */
export interface DoorServant {
  /** Connections are handed over unread, as another thread is to read them. */
  readonly takesUnread?: boolean;
  accept(socket: Socket): void;
  /** A connection could not be accepted. */
  failed(error: Error): void;
}

/** A door that is open, as a server sees it. */
export type OpenDoor = Pick<Door, "bound" | "serve" | "close">;

/** Connections that wait at one door. */
export const MAX_HELD_CONNECTIONS = 1024;

/** An open place. */
export class Door {
  readonly #server: Server;
  readonly #early: EarlyConnections;
  readonly #held = new Set<Socket>();
  /** Of those that are held. */
  #slots: ConnectionSlots | undefined = new ConnectionSlots({
    maxConnections: 1,
    maxUnidentified: MAX_HELD_CONNECTIONS,
    stageTimeoutMs: Number.POSITIVE_INFINITY,
    idleUnderPressureMs: Number.POSITIVE_INFINITY,
  });
  #servant: DoorServant | undefined;

  /** Made by openDoor(). */
  constructor(early: EarlyConnections) {
    this.#early = early;
    this.#server = createServer(
      // Unread, the bytes of one that waits stay in the kernel, and its TLS handshake can begin
      // later.
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000, pauseOnConnect: true },
      (socket) => this.#connected(socket),
    );
  }

  /** Binds. Rejects with Node's error. Called once, by openDoor(). */
  bind(address: DoorAddress): Promise<void> {
    const { host, port = 0, path, reusePort = false } = address;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path === undefined ? { host, port, reusePort } : { path }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#servant?.failed(error));
        resolve();
      });
    });
  }

  /** What it is bound to: a host and port, or the path of a unix socket. */
  get bound(): AddressInfo | string {
    return this.#server.address() as AddressInfo | string;
  }

  /** Connections that wait. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** Hands over the connections that wait, and then each that comes. */
  serve(servant: DoorServant): void {
    this.#servant = servant;
    for (const socket of this.#emptied()) this.#handOver(socket, servant);
  }

  /**
   * Takes no more connections, and closes those that wait. Resolves when those handed over have
   * closed, too. Can be repeated.
   */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#emptied()) socket.destroy();
    return closed;
  }

  #emptied(): readonly Socket[] {
    const sockets = [...this.#held];
    this.#held.clear();
    this.#slots = undefined;
    return sockets;
  }

  #connected(socket: Socket): void {
    if (this.#servant !== undefined) this.#handOver(socket, this.#servant);
    else if (this.#early === "refuse" || this.#slots === undefined) socket.destroy();
    else this.#hold(socket, this.#slots);
  }

  #hold(socket: Socket, slots: ConnectionSlots): void {
    socket.on("error", () => {});
    const connection = {
      idleSinceMs: () => 0,
      drain: () => {},
      leave: () => {},
      destroy: () => {
        this.#held.delete(socket);
        socket.destroy();
      },
    };
    // It has no deadline, as in the kernel's queue: time does not matter.
    slots.open(connection, hostOf(socket), 0, () => {});
    this.#held.add(socket);
  }

  #handOver(socket: Socket, servant: DoorServant): void {
    if (servant.takesUnread !== true) {
      // What Node sets on a connection that does not begin paused.
      (socket as { readableFlowing: boolean | null }).readableFlowing = null;
      socket.read(0);
    }
    servant.accept(socket);
  }
}

/**
 * Binds a place. Rejects with Node's error: EADDRINUSE too where a process listens on the unix
 * socket. The file of one that has ended is replaced.
 * @param early what happens to connections before Door.serve
 */
export async function openDoor(
  address: DoorAddress,
  early: EarlyConnections = "hold",
): Promise<Door> {
  if (address.path !== undefined) await removeStaleSocket(address.path);
  const door = new Door(early);
  await door.bind(address);
  return door;
}

/**
 * Removes the file that a unix socket's server left behind when it ended. Anything but a socket,
 * and one on which a process listens, is kept, so that binding fails. (etcd replaces that, too, and
 * cuts the other process off.)
 */
async function removeStaleSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
  const isStale = await new Promise<boolean>((resolve) => {
    const socket = connect({ path }, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
  });
  if (isStale) unlinkSync(path);
}

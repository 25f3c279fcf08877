/**
 * Has the kernel's socket read, or not, beneath the streams that have taken it over: a stream that
 * is paused reads on into its buffer, piece by piece. Node has no name for that; another runtime
 * reads on.
 */
import type { Socket } from "node:net";

/** @param socket nothing happens where it is closed */
export function setReading(socket: Socket, isReading: boolean): void {
  const { _handle: handle } = socket as {
    _handle?: { readStart?(): void; readStop?(): void } | null;
  };
  if (isReading) handle?.readStart?.();
  else handle?.readStop?.();
}

/** Where lines of a log go on this machine: standard streams, files and named pipes. */
import { closeSync, constants, fstatSync, fsyncSync, openSync, writeSync } from "node:fs";
import { setTimeout as setTimer } from "node:timers";
import type { LogSurroundings, LogTarget } from "../src/log-output.ts";

/** Of this process. */
export const nodeSurroundings: LogSurroundings = {
  monotonicMs: () => performance.now(),
  later(delayMs, task) {
    const timer = setTimer(task, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  pause: (delayMs) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delayMs),
  encode: (line) => Buffer.from(line),
};

const FILE_MODE = 0o600;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK;

/**
 * A descriptor of this process's standard output (1) or error (2) that never blocks.
 *
 * A pipe or a terminal is opened again, since its flags are shared with other processes. A socket
 * cannot be: of it Node's own stream sets the flag, as it does in any program that uses the stream.
 */
export function nonBlockingStream(fd: 1 | 2): number {
  const found = fstatSync(fd);
  if (found.isFIFO() || found.isCharacterDevice()) {
    try {
      return openSync(`/proc/self/fd/${fd}`, APPEND);
    } catch {
      // No such file system, or the pipe belongs to another user.
    }
  }
  // The access is what sets the flag.
  if (found.isFIFO() || found.isSocket()) void (fd === 1 ? process.stdout : process.stderr);
  return fd;
}

/** The target of a standard stream, by its descriptor. */
export function streamTarget(fd: number): LogTarget {
  return { write: (bytes) => writeSync(fd, bytes), reopen() {}, close() {} };
}

/**
 * The target of a file, which is made where it is not there; or of a named pipe. Throws the
 * system's error (ENXIO: a pipe without a reader).
 */
export function fileTarget(path: string): LogTarget {
  const open = (): number => openSync(path, APPEND | constants.O_CREAT, FILE_MODE);
  let fd = open();
  return {
    write: (bytes) => writeSync(fd, bytes),
    reopen() {
      const next = open();
      closeSync(fd);
      fd = next;
    },
    close() {
      try {
        fsyncSync(fd);
      } catch {
        // A pipe has no disk.
      }
      closeSync(fd);
    },
  };
}

/**
 * The thread that computes password hashes. It is its own worker: the member's thread loads this
 * file for its address alone.
 *
 *     to it:   {id, password, hash}       is the password that of the hash?
 *              {id, password, cost}       a new hash
 *     from it: {id, result} or {id, error}
 *
 * It has the priority of the process. With a lower one, whatever else is busy on the machine holds
 * up every login, and a container that may use one processor has no other for it.
 */
import { parentPort, workerData } from "node:worker_threads";

/** What says that this file runs as the worker. */
const ROLE = "bcrypt";

/** A job for the worker. */
export interface BcryptJob {
  readonly id: number;
  readonly password: string;
  /** To be compared with; undefined: a new hash is wanted. */
  readonly hash: string | undefined;
  readonly cost: number;
}

/** What came of a job: whether the password is right, or a new hash. */
export interface BcryptResult {
  readonly id: number;
  readonly result: boolean | string | undefined;
  readonly error: string | undefined;
}

/** How the worker is started. */
export const bcryptWorker: { readonly url: URL; readonly workerData: string } = {
  url: new URL(import.meta.url),
  workerData: ROLE,
};

if (parentPort !== null && workerData === ROLE) {
  const port = parentPort;
  const { default: bcrypt } = await import("bcryptjs");
  port.on("message", ({ id, password, hash, cost }: BcryptJob) => {
    let result: BcryptResult;
    try {
      // Go's bcrypt writes "$2a$"; the hashes are the same for passwords of up to 72 bytes.
      const salt = () => bcrypt.genSaltSync(cost).replace(/^\$2b\$/, "$2a$");
      const value =
        hash === undefined ? bcrypt.hashSync(password, salt()) : isHashOf(bcrypt, password, hash);
      result = { id, result: value, error: undefined };
    } catch (error) {
      result = { id, result: undefined, error: (error as Error).message };
    }
    port.postMessage(result);
  });
}

/** False for a text that is no hash. */
function isHashOf(
  bcrypt: { compareSync(password: string, hash: string): boolean },
  password: string,
  hash: string,
): boolean {
  try {
    return bcrypt.compareSync(password, hash);
  } catch {
    return false;
  }
}

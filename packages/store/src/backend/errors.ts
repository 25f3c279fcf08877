/** The operating errors of a store. */
import { CodedError } from "@quorate/proto";

/** The store's files are damaged. The member stops; nothing is repaired on a guess. */
export class StoreDamageError extends CodedError<"Damaged"> {
  /** The directory of the store. */
  readonly path: string;
  /** The position: a bucket and a key in hexadecimal, or a byte offset of a stream. */
  readonly place: string;
  readonly problem: string;
  constructor(path: string, place: string, problem: string) {
    super(
      "StoreDamageError",
      "Damaged",
      `${path}: ${place}: ${problem}. The member stops rather than serve wrong data: ` +
        `remove it from the cluster, move ${path} away, and add it again, or restore a backup`,
    );
    this.path = path;
    this.place = place;
    this.problem = problem;
  }
}

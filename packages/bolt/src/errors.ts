import { CodedError } from "@quorate/proto";

/** The file holds bytes that bbolt does not write. */
export class BoltDamageError extends CodedError<"Damaged"> {
  readonly path: string;
  /** The offset of the broken page or record in the file. */
  readonly offset: number;
  readonly reason: string;

  constructor(path: string, offset: number, reason: string) {
    super("BoltDamageError", "Damaged", `${path}: damaged at byte ${offset}: ${reason}`);
    this.path = path;
    this.offset = offset;
    this.reason = reason;
  }
}

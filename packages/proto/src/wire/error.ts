import { CodedError } from "./coded-error.ts";

/** Thrown by decoders for malformed messages. */
export class WireError extends CodedError<"MalformedMessage"> {
  /** The problem, without the offset. */
  readonly reason: string;
  /** Byte offset in the decoded input at which reading stopped. */
  readonly offset: number;
  /**
   * Full name of the innermost message being read, such as "etcdserverpb.PutRequest"; empty before
   * any message is known.
   */
  typeName = "";
  /**
   * Field of that message in its .proto spelling; empty if the field is unknown or the tag itself
   * is broken.
   */
  field = "";

  constructor(reason: string, offset: number) {
    super("WireError", "MalformedMessage", `${reason} at byte ${offset}`);
    this.reason = reason;
    this.offset = offset;
  }

  /** Adds message and field, once: the innermost message wins. */
  locate(typeName: string, field: string): this {
    if (this.typeName === "") {
      this.typeName = typeName;
      this.field = field;
      this.message = `${typeName}${field === "" ? "" : `.${field}`}: ${this.reason} at byte ${this.offset}`;
    }
    return this;
  }
}

import { CodedError } from "../wire/coded-error.ts";

/**
 * A request body that is not the JSON form of its message. The text is that of etcd's gateway,
 * which sends it with INVALID_ARGUMENT: of Go's encoding/json where the JSON itself is broken, of
 * protojson ("proto: (line 1:2): ...") where it does not fit the message.
 */
export class JsonError extends CodedError<"MalformedJson"> {
  constructor(message: string) {
    super("JsonError", "MalformedJson", message);
  }
}

/** A JSON value, or a piece of one, beyond a limit that etcd does not have. */
export class JsonLimitError extends CodedError<"JsonTooLarge"> {
  constructor(message: string) {
    super("JsonLimitError", "JsonTooLarge", message);
  }
}

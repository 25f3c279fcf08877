import { CodedError } from "@quorate/proto";

/** A request that is invalid in any state, and for which etcd's API has no error of its own. */
export class InvalidRequestError extends CodedError<"InvalidRequest"> {
  constructor(problem: string) {
    super("InvalidRequestError", "InvalidRequest", `etcdserver: ${problem}`);
  }
}

/**
 * The convention for error classes, in every package:
 *
 * - An operating error (a missing file, damaged bytes, a bad setting) is a class that extends
 *   CodedError. Its `code` is a PascalCase string, such as "NotFound"; a class with several causes
 *   has a union of codes.
 * - The errors of one package that a caller distinguishes form a union of such classes, named after
 *   the package (WalFailure = WalDamageError | WalError). A `switch` on `code` narrows it, and the
 *   compiler sees a missing case.
 * - A defect of the program is an InvariantError (invariant.ts), never an operating error.
 *
 * Outside the convention: EtcdError, whose code names an entry of etcd's error catalogue;
 * StatusError of packages/rpc, whose code is gRPC's number; and DiskError of packages/host, which
 * imports nothing but has the same form.
 *
 * Who catches one finds out by its list of calls where it came from. Refusals of requests have
 * none: EtcdError and StatusError (stackless-error.ts).
 */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  /**
   * @param name the class's name, as a literal: minified programs rename classes
   * @param cause the error that led to this one
   */
  constructor(name: string, code: Code, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    this.code = code;
  }
}

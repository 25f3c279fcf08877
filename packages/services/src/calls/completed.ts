/** The response of a proposal, made ready for its caller. */
import type { ResponseHeader } from "@quorate/proto";

/** The result of a request whose responses have a header. */
interface Result<T> {
  readonly error: Error | undefined;
  readonly response: T | undefined;
}

/**
 * The response with this member's header, in which the store has put the revision alone.
 * @throws EtcdError, InvalidRequestError: the error that the request came to
 */
export function completed<T extends { header: ResponseHeader | undefined }>(
  member: { header(revision: number): ResponseHeader },
  { error, response }: Result<T>,
): T & { header: ResponseHeader } {
  if (response === undefined) throw error;
  const header = member.header(response.header?.revision ?? 0);
  return Object.assign(response, { header });
}

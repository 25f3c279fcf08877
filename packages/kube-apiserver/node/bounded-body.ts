/** Responses of other servers, which may be of any length. */
import type { Dispatcher } from "undici";

/**
 * Chunks of one response. Each costs memory and time beside its bytes: 8 MiB in chunks of one byte
 * would take a gigabyte.
 */
export const MAX_RESPONSE_PIECES = 16_384;

/**
 * The whole body of a response.
 * @param tooLong the error of one that has more than a bound, such as "1024 bytes"
 */
export async function boundedBody(
  { body, headers }: Pick<Dispatcher.ResponseData, "body" | "headers">,
  maxBytes: number,
  tooLong: (bound: string) => Error,
): Promise<Buffer> {
  const refuse = (bound: string): never => {
    body.destroy();
    throw tooLong(bound);
  };
  if (Number(headers["content-length"] ?? 0) > maxBytes) refuse(`${maxBytes} bytes`);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Buffer).length;
    if (size > maxBytes) refuse(`${maxBytes} bytes`);
    if (chunks.push(chunk as Buffer) > MAX_RESPONSE_PIECES) refuse(`${MAX_RESPONSE_PIECES} pieces`);
  }
  return Buffer.concat(chunks);
}

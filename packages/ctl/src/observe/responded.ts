import type { StatusResponse } from "@quorate/proto";

/** What is known of a member, with its status. */
export type Responded<T> = T & { readonly status: StatusResponse };

/** True where the member responded with its status. */
export function hasResponded<T extends { readonly status: StatusResponse | undefined }>(
  one: T,
): one is Responded<T> {
  return one.status !== undefined;
}

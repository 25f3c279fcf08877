import type { Io } from "@quorate/cli";

import { fromUtf8, type MemberAddResponse, quoteBytes } from "@quorate/proto";

/** Prints the environment variables to start an added member with. */
export function printVariables(
  io: Io,
  name: string,
  urls: readonly string[],
  added: Pick<MemberAddResponse, "member" | "members">,
): void {
  const pairs = added.members.flatMap((one) =>
    one.peerURLs.map((url) => `${one.ID === added.member?.ID ? name : one.name}=${url}`),
  );
  const quoted = (text: string) => quoteBytes(fromUtf8(text));
  io.stdout(
    `\nETCD_NAME=${quoted(name)}\nETCD_INITIAL_CLUSTER=${quoted(pairs.join(","))}\n` +
      `ETCD_INITIAL_ADVERTISE_PEER_URLS=${quoted(urls.join(","))}\nETCD_INITIAL_CLUSTER_STATE="existing"\n`,
  );
}

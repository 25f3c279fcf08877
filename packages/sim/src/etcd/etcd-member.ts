/**
 * What makes a simulated member one of etcd's in a cluster with members of Quorate: it runs on the
 * same parts, and differs where the others can see it.
 *
 *   protocol     its messages go as etcd's (etcd-wire.ts, or one by one), its snapshots as database
 *                files; it knows no path of Quorate's
 *   Raft         refused votes carry no commit index, and each entry goes in an append of its own
 *   entries      etcd-entries.ts
 *   apply        the rules of etcd, as the others'; the model has them too (check/etcd-rules.ts)
 */
import { raftpb } from "@quorate/proto";
import type { SimOptions } from "../base/options.ts";

const { MsgApp, MsgVoteResp, MsgPreVoteResp } = raftpb.MessageType;

/**
 * Whether the machine of a name has a member of etcd's: some of those that form the cluster, and
 * every second one that comes later.
 */
export function isEtcd({ etcdMembers, members }: SimOptions, name: string): boolean {
  if (etcdMembers === 0 || !name.startsWith("m")) return false;
  const number = Number(name.slice(1));
  return number < members ? number < etcdMembers : number % 2 === 0;
}

/** The messages that leave a member of etcd, in place of those that leave one of Quorate. */
export function asEtcdSends(messages: readonly raftpb.Message[]): raftpb.Message[] {
  return messages.flatMap((message) => {
    const { type, reject, entries } = message;
    if (reject && (type === MsgVoteResp || type === MsgPreVoteResp))
      return [{ ...message, commit: 0 }];
    return type === MsgApp && entries.length > 1 ? oneByOne(message) : [message];
  });
}

function oneByOne(append: raftpb.Message): raftpb.Message[] {
  let { index, logTerm } = append;
  return append.entries.map((entry) => {
    const single = { ...append, index, logTerm, entries: [entry] };
    ({ index, term: logTerm } = entry);
    return single;
  });
}

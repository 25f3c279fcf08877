/**
 * What keeps a shadow from changing its cluster, on its way to the other members and from them: of
 * proposals only that of its own name goes out, and none comes in. A learner passes proposals on to
 * the leader, so a stranger who reaches the peer port could else write through it.
 */
import type { MemberDeps, MemberTransport } from "@quorate/member";
import { InternalRaftRequest, raftpb } from "@quorate/proto";

const { MsgProp } = raftpb.MessageType;

/** How many proposals were held back. */
export interface HeldBack {
  incoming: number;
  outgoing: number;
}

/** A member that proposes nothing but its name, and passes on nothing. */
export function quiet(deps: MemberDeps, held: HeldBack): MemberDeps {
  return {
    ...deps,
    makeTransport(request) {
      const { listener } = request;
      const transport = deps.makeTransport({
        ...request,
        listener: {
          unreachable: (id) => listener.unreachable(id),
          snapshotSent: (id, taken) => listener.snapshotSent(id, taken),
          snapshotReceived: (stream) => listener.snapshotReceived(stream),
          received(messages) {
            const kept = messages.filter(({ type }) => type !== MsgProp);
            held.incoming += messages.length - kept.length;
            listener.received(kept);
          },
        },
      });
      return quietTransport(transport, held);
    },
  };
}

function quietTransport(transport: MemberTransport, held: HeldBack): MemberTransport {
  return {
    listen: () => transport.listen(),
    sendSnapshot: (snapshot) => transport.sendSnapshot(snapshot),
    addPeer: (id, urls) => transport.addPeer(id, urls),
    updatePeer: (id, urls) => transport.updatePeer(id, urls),
    removePeer: (id) => transport.removePeer(id),
    peers: () => transport.peers(),
    close: () => transport.close(),
    send(messages) {
      const kept = messages.filter(isQuiet);
      held.outgoing += messages.length - kept.length;
      transport.send(kept);
    },
  };
}

function isQuiet({ type, entries }: raftpb.Message): boolean {
  return type !== MsgProp || entries.every(({ data }) => isOwnName(data));
}

function isOwnName(data: Uint8Array): boolean {
  return InternalRaftRequest.decode(data).clusterMemberAttrSet !== undefined;
}

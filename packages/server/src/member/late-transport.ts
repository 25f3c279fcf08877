/** The parts of a member are put together before its transport is open. */
import type { Transport } from "@quorate/transport";

/** The transport that `opened` gives, for parts that are made earlier and use it later. */
export function lateTransport(opened: () => Transport): Transport {
  return {
    send: (messages) => opened().send(messages),
    sendSnapshot: (stream) => opened().sendSnapshot(stream),
    addPeer: (id, urls) => opened().addPeer(id, urls),
    updatePeer: (id, urls) => opened().updatePeer(id, urls),
    removePeer: (id) => opened().removePeer(id),
    peers: () => opened().peers(),
    close: () => opened().close(),
  };
}

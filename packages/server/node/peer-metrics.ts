/** The peer transport's counters as etcd's etcd_network_* metrics. */
import type { SlotCounters } from "@quorate/host";
import type { MemberMetrics } from "@quorate/member";
import type { MetricRegistry } from "@quorate/metrics";
import { idToHex } from "@quorate/proto";
import type { TransportObserver } from "@quorate/transport/node";

/** Declares what is counted of connections to the peer port that were refused or had to go. */
export function peerConnectionMetrics(
  registry: MetricRegistry,
  counters: () => SlotCounters,
): void {
  const declare = (name: string, help: string, read: (counters: SlotCounters) => number) =>
    registry.readCounter(`quorate_peer_connections_${name}_total`, help, () => read(counters()));
  declare(
    "timed_out",
    "Connections to the peer port whose handshake or first headers did not end in time.",
    (c) => c.timedOut,
  );
  declare(
    "displaced_unidentified",
    "Connections of unknown peers to the peer port closed for newer ones.",
    (c) => c.displacedUnidentified,
  );
  declare(
    "displaced",
    "Connections of members closed because another member needed a slot.",
    (c) => c.displaced,
  );
  declare("refused", "Connections of members that found no slot.", (c) => c.refused);
}

/** Ids whose text is remembered. */
const MAX_NAMES = 1000;

/**
 * Counts for one member. A peer's series are there from when it is known, at 0, so that the first
 * failure is an increase that a rule sees, and go when it is removed.
 * @param isRemoved whether a member was removed from the cluster: what ends late with such a one is
 * not counted.
 */
export function transportObserver(
  metrics: MemberMetrics,
  selfId: bigint,
  isRemoved: (id: bigint) => boolean,
): TransportObserver {
  const local = idToHex(selfId);
  // Ids are turned into text once for each peer, not for each message.
  const names = new Map<bigint, string>();
  const name = (id: bigint): string => {
    let text = names.get(id);
    if (text === undefined) {
      text = idToHex(id);
      if (names.size < MAX_NAMES) names.set(id, text);
    }
    return text;
  };
  const byPeer = [
    metrics.peerSentBytes,
    metrics.peerReceivedBytes,
    metrics.peerSentFailures,
    metrics.peerReceivedFailures,
    metrics.peerRoundTrip,
    metrics.snapshotSendInflights,
    metrics.snapshotReceiveInflights,
    metrics.snapshotSendSuccess,
    metrics.snapshotSendFailures,
    metrics.snapshotReceiveSuccess,
    metrics.snapshotReceiveFailures,
  ];
  const byPair = [metrics.knownPeers, metrics.activePeers, metrics.disconnectedPeers];
  // As in etcd a member counts itself, so that a cluster of one has the series, and a sum is the
  // cluster's size.
  metrics.knownPeers.with(local, local).value = 1;
  return {
    known: (id, isKnown) => {
      const peer = name(id);
      if (isKnown) {
        for (const family of byPeer) family.with(peer);
        for (const family of byPair) family.with(local, peer);
        metrics.knownPeers.with(local, peer).value = 1;
        return;
      }
      for (const family of [
        ...byPeer,
        metrics.snapshotSendDuration,
        metrics.snapshotReceiveDuration,
      ])
        family.remove(peer);
      for (const family of byPair) family.remove(local, peer);
      names.delete(id);
    },
    traffic: (id) => ({
      sent: metrics.peerSentBytes.with(name(id)),
      received: metrics.peerReceivedBytes.with(name(id)),
    }),
    dropped: (id, _type, count) => {
      if (!isRemoved(id)) metrics.peerSentFailures.with(name(id)).add(count);
    },
    receiveFailed: (id) => {
      if (!isRemoved(id)) metrics.peerReceivedFailures.with(name(id)).add();
    },
    active: (id, active) => {
      if (isRemoved(id)) return;
      metrics.activePeers.with(local, name(id)).value = active ? 1 : 0;
      if (!active) metrics.disconnectedPeers.with(local, name(id)).add();
    },
    roundTrip: (id, ms) => metrics.peerRoundTrip.with(name(id)).observe(ms / 1000),
    snapshotSendStarted: (id) => {
      metrics.snapshotSendInflights.with(name(id)).value++;
    },
    snapshotSendEnded: (id, taken, durationMs) => {
      if (isRemoved(id)) return;
      metrics.snapshotSendInflights.with(name(id)).value--;
      (taken ? metrics.snapshotSendSuccess : metrics.snapshotSendFailures).with(name(id)).add();
      if (taken) metrics.snapshotSendDuration.with(name(id)).observe(durationMs / 1000);
    },
    snapshotReceiveStarted: (id) => {
      metrics.snapshotReceiveInflights.with(name(id)).value++;
    },
    snapshotReceiveEnded: (id, taken, durationMs) => {
      if (isRemoved(id)) return;
      metrics.snapshotReceiveInflights.with(name(id)).value--;
      (taken ? metrics.snapshotReceiveSuccess : metrics.snapshotReceiveFailures)
        .with(name(id))
        .add();
      if (taken) metrics.snapshotReceiveDuration.with(name(id)).observe(durationMs / 1000);
    },
    refused() {},
  };
}

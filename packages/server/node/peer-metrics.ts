/** What the peer transport tells of its work, as etcd's etcd_network_* metrics. */
import { idToHex } from "@quorate/proto";
import type { TransportObserver } from "@quorate/transport/node";
import type { MemberMetrics } from "../src/metrics/member-metrics.ts";

export function transportObserver(metrics: MemberMetrics, selfId: bigint): TransportObserver {
  const local = idToHex(selfId);
  // Ids are turned into text once for each peer, not for each message.
  const names = new Map<bigint, string>();
  const name = (id: bigint): string => {
    let text = names.get(id);
    if (text === undefined) {
      text = idToHex(id);
      if (names.size < 1000) names.set(id, text);
    }
    return text;
  };
  return {
    sent: (id, sizeBytes) => metrics.peerSentBytes.with(name(id)).add(sizeBytes),
    received: (id, sizeBytes) => metrics.peerReceivedBytes.with(name(id)).add(sizeBytes),
    dropped: (id, _type, count) => metrics.peerSentFailures.with(name(id)).add(count),
    receiveFailed: (id) => metrics.peerReceivedFailures.with(name(id)).add(),
    active: (id, active) => {
      if (!active) metrics.disconnectedPeers.with(local, name(id)).add();
    },
    roundTrip: (id, ms) => metrics.peerRoundTrip.with(name(id)).observe(ms / 1000),
    snapshotSendStarted: (id) => {
      metrics.snapshotSendInflights.with(name(id)).value++;
    },
    snapshotSendEnded: (id, taken, durationMs) => {
      metrics.snapshotSendInflights.with(name(id)).value--;
      (taken ? metrics.snapshotSendSuccess : metrics.snapshotSendFailures).with(name(id)).add();
      if (taken) metrics.snapshotSendDuration.with(name(id)).observe(durationMs / 1000);
    },
    snapshotReceiveStarted: (id) => {
      metrics.snapshotReceiveInflights.with(name(id)).value++;
    },
    snapshotReceiveEnded: (id, taken, durationMs) => {
      metrics.snapshotReceiveInflights.with(name(id)).value--;
      (taken ? metrics.snapshotReceiveSuccess : metrics.snapshotReceiveFailures).with(name(id)).add();
      if (taken) metrics.snapshotReceiveDuration.with(name(id)).observe(durationMs / 1000);
    },
    refused() {},
  };
}

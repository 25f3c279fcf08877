/**
 * Member 2 in a process of its own, to be stopped and killed. It listens on the port in its first
 * argument (0 for any), prints the port, and answers every heartbeat of member 1, who is at the URL
 * in its second argument. Snapshots it reads and forgets.
 */
import { SeededRandom, silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { raftpb } from "@quorate/proto";
import { Http2Transport } from "@quorate/transport/node";

const [port, url] = process.argv.slice(2);
const transport = new Http2Transport(
  {
    selfId: 2n,
    clusterId: 0xc36a1e619c38211bn,
    localUrls: [],
    listen: [{ host: "127.0.0.1", port: Number(port), secure: false }],
    serverVersion: "3.7.0",
    minClusterVersion: "3.0.0",
    quickRetryMs: 5,
    leastRetryMs: 10,
    mostRetryMs: 50,
  },
  {
    clock: nodeClock,
    random: new SeededRandom(2n),
    logger: silentLogger,
    listener: {
      received(messages) {
        const answers = messages.filter((one) => one.type === raftpb.MessageType.MsgHeartbeat);
        transport.send(
          answers.map((one) =>
            raftpb.Message.create({
              type: raftpb.MessageType.MsgHeartbeatResp,
              from: 2n,
              to: 1n,
              term: 1,
              commit: one.commit,
            }),
          ),
        );
      },
      async snapshotReceived(stream) {
        for await (const chunk of stream.body)
          if (chunk.length === 0) throw new Error("empty chunk");
      },
      unreachable() {},
      snapshotSent() {},
    },
    http: () => ({ status: 404, headers: {}, body: "" }),
  },
);
const [bound] = await transport.listen();
transport.addPeer(1n, [url]);
console.log(bound.port);

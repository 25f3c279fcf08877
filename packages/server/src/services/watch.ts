/** etcdserverpb.Watch: the requests of a stream, handed to its watches. */
import { WatchRequest, WatchService } from "@quorate/proto";
import type { StreamHandler } from "@quorate/rpc";
import { callerOf } from "../member/caller.ts";
import type { Member } from "../member/member.ts";

/** The handlers of the watch service, by path. */
export function watchService(member: Member): ReadonlyMap<string, StreamHandler> {
  return new Map<string, StreamHandler>([
    [
      WatchService.methods.Watch.path,
      (call) => {
        const stream = member.watch(callerOf(call.context), call);
        return {
          message: (bytes) => {
            try {
              const union = WatchRequest.decode(bytes).requestUnion;
              // A request of a kind that is not known is passed over, as in etcd.
              if (union?.case === "createRequest") stream.create(union.value);
              else if (union?.case === "cancelRequest") stream.cancel(union.value.watchId);
              else if (union?.case === "progressRequest") stream.requestProgress();
            } catch (error) {
              stream.close();
              throw error;
            }
          },
          // A client that has nothing more to ask still gets its events.
          drained: () => stream.drained(),
          cancelled: () => stream.close(),
        };
      },
    ],
  ]);
}

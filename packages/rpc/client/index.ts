/** A client's side of the RPC engine on sockets: what a program loads that serves nothing. */
export { Channel, type ChannelOptions, splitAddress } from "../node/client/channel.ts";
export { DeadlineQueue, type Expiring } from "../src/deadlines.ts";

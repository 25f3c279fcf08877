/** A client's side of the RPC engine on sockets: what a program loads that serves nothing. */
export { Channel, splitAddress } from "../node/client/channel.ts";

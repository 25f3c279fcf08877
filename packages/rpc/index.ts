/** Clients talking to members: how a service sees a call. The engines that carry calls are in ./node. */
export * from "./src/codes.ts";
export * from "./src/service.ts";

/** A member among real sockets. */
export { type ServeDeps, type ServingMember, serve } from "./serve.ts";

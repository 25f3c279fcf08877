/** A member among real sockets. */
export { AuditOutput, MAX_AUDIT_QUEUE_BYTES } from "./audit/audit-output.ts";
export { main } from "./main.ts";
export { type ServingMember, serve } from "./serve.ts";

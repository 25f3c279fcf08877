/** The suite that every implementation of the transport must pass. */
export { type MemberUnderTest, type NetworkUnderTest, transportContract } from "./contract.ts";
export { RecordingListener } from "./recording-listener.ts";

/** The suite that every twin of the transport must pass. */
export { type MemberUnderTest, type NetworkUnderTest, transportContract } from "./contract.ts";
export { RecordingListener } from "./recording-listener.ts";

export { GrpcCode } from "@quorate/proto";

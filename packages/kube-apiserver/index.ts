/**
 * A Kubernetes API server on kube-storage: its handlers, and resources in TypeScript. node/ has
 * sockets, files and the program.
 */
export type { Admission, AdmissionAttributes } from "./src/admission/admission.ts";
export {
  type WebhookCall,
  WebhookCallError,
  type WebhookCaller,
  type WebhookResponse,
} from "./src/admission/webhook-caller.ts";
export type { Authorizer, AuthorizerAttributes, Decision } from "./src/authz/authorizer.ts";
export { type Serving, servedResourcesOf } from "./src/builtin/served-resources.ts";
export type { ChaosFault, FaultName } from "./src/chaos/chaos.ts";
export { type ChaosSettings, chaosSettingsOf } from "./src/chaos/settings.ts";
export { OpenApiDocuments, type OpenApiPage } from "./src/openapi/openapi-documents.ts";
export {
  defineResource,
  type ObjectOf,
  type ResourceDefinition,
  type TypedColumn,
  type TypedObject,
  type TypedResource,
} from "./src/typed/define-resource.ts";
export * as shapes from "./src/typed/shapes.ts";
export type { TypedStrategy } from "./src/typed/typed-strategy.ts";

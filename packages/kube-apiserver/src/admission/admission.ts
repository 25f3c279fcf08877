/** Admission: what may change or refuse a write after authorization (apiserver: pkg/admission). */

import type {
  Cancellation,
  GroupVersionKind,
  GroupVersionResource,
  KubeObject,
  UserInfo,
} from "@quorate/kube-storage";

export interface AdmissionAttributes {
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  readonly user: UserInfo;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Undefined for DELETE. */
  readonly object: KubeObject | undefined;
  /** Undefined for CREATE. */
  readonly oldObject: KubeObject | undefined;
  /** The request's options, as their JSON object with kind and apiVersion. */
  readonly options: unknown;
  readonly dryRun: boolean;
  readonly signal: Cancellation;
  warn(text: string): void;
  /** For the audit log; absent where the request is not recorded. */
  readonly annotate?: ((key: string, value: string) => void) | undefined;
}

export interface Admission {
  /** Resolves with the object, changed or not. Rejects with ApiError. */
  mutate(attributes: AdmissionAttributes): Promise<KubeObject | undefined>;
  /** Rejects with ApiError. */
  validate(attributes: AdmissionAttributes): Promise<void>;
}

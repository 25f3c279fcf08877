/** Admission plug-ins by kube-apiserver's names, for the flags that turn them on and off. */

/** On unless they are taken away. */
export const DEFAULT_PLUGINS = [
  "LimitRanger",
  "ServiceAccount",
  "TaintNodesByCondition",
  "Priority",
  "RuntimeClass",
  "CertificateSubjectRestriction",
  "MutatingAdmissionPolicy",
  "ValidatingAdmissionPolicy",
  "ResourceQuota",
] as const;

/** Off unless they are added. */
export const MORE_PLUGINS = ["OwnerReferencesPermissionEnforcement"] as const;

/** Always on. */
export const FIXED_PLUGINS = [
  "NamespaceLifecycle",
  "CertificateApproval",
  "CertificateSigning",
  "MutatingAdmissionWebhook",
  "ValidatingAdmissionWebhook",
] as const;

/** One that can be turned on and off. */
export type PluginName = (typeof DEFAULT_PLUGINS | typeof MORE_PLUGINS)[number];

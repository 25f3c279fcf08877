/** Descriptions of core/v1's kinds that control planes without nodes need, of events and leases. */
export const coreTexts = `
core.Namespace: A space of names. Most objects live in one, and go when it is deleted.
core.NamespaceSpec: What is wanted of a namespace.
  finalizers: Names that must be removed before the namespace goes. "kubernetes" is removed when it
      is empty.
core.NamespaceStatus: What was last observed of a namespace.
  phase: Active, or Terminating while its content is deleted.
  conditions: Why a namespace that is deleted still exists.
core.NamespaceCondition: One aspect of a namespace's deletion.
core.ConfigMap: Configuration that programs read, as texts or bytes by name.
  data: Texts by name. Names consist of letters, digits, "-", "_" and ".".
  binaryData: Bytes in base64 by name. A name may not be in data as well.
  immutable: If true, data and binaryData cannot be changed any more.
core.Secret: Confidential data by name, such as passwords and keys.
  data: Bytes in base64 by name. Names consist of letters, digits, "-", "_" and ".".
  stringData: Texts by name, for writing only: they replace entries of data.
  immutable: If true, data cannot be changed any more.
  type: What the data is for, such as Opaque or kubernetes.io/tls. It cannot be changed.
core.ServiceAccount: An identity for programs.
  secrets: Secrets that programs with this identity may use.
  imagePullSecrets: Secrets for pulling images.
  automountServiceAccountToken: Whether pods get a token of this identity by default.
core.Event: A report of something that happened to an object. It is deleted after a time.
  involvedObject: The object that the event is about.
  reason: What happened, as one word for programs.
  message: What happened, for a reader.
  source: The component that reports it.
  firstTimestamp: When it happened first.
  lastTimestamp: When it happened last.
  count: How often it happened.
  type: Normal or Warning.
  eventTime: When it happened first, in microseconds.
  series: How often it happened since, and when last.
  action: What was done about the object.
  related: Another object that has to do with it.
  reportingComponent: The controller that reports it, such as example.com/controller.
  reportingInstance: The instance of that controller.
core.EventSeries: Repetitions of an event.
core.EventSource: Where an event comes from.
core.ObjectReference: Names an object.
  kind: The object's kind.
  namespace: The object's namespace.
  name: The object's name.
  uid: The object's uid.
  apiVersion: The object's group and version.
  resourceVersion: The version of the object that is meant.
  fieldPath: A part of the object that is meant, such as spec.containers[2].
core.LocalObjectReference: Names an object in the same namespace.
  name: The object's name.
events.Event: A report of something that happened to an object. It is deleted after a time.
  eventTime: When it happened first, in microseconds.
  series: How often it happened since, and when last.
  reportingController: The controller that reports it, such as example.com/controller.
  reportingInstance: The instance of that controller.
  action: What was done about the object.
  reason: Why it was done, as one word for programs.
  regarding: The object that the event is about.
  related: Another object that has to do with it.
  note: What happened, for a reader.
  type: Normal or Warning.
events.EventSeries: Repetitions of an event.
  count: How often it happened.
  lastObservedTime: When it happened last.
coordination.Lease: A lock with an end, for leader election and heartbeats.
coordination.LeaseSpec: Who holds the lease and for how long.
  holderIdentity: The present holder.
  leaseDurationSeconds: Seconds after renewTime for which others must wait.
  acquireTime: When the present holder took the lease.
  renewTime: When the present holder last renewed it.
  leaseTransitions: How often the holder has changed.
  strategy: How the holder is chosen where the election is coordinated.
  preferredHolder: The holder that should take over.
`;

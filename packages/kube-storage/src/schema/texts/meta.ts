/** Descriptions of meta/v1's types. */
export const metaTexts = `
meta.ObjectMeta: Standard object's metadata, which every stored object has.
  name: The object's name, unique among the objects of its kind in its namespace. It cannot change.
  generateName: A prefix from which the server makes a unique name where name is absent.
  namespace: The namespace of the object; "default" where a client sets none. It cannot be changed.
  selfLink: No longer in use.
  uid: A unique value over all time. The server sets it when it creates the object.
  resourceVersion: The version of the object's content. Clients compare it and send it back for
      optimistic locking and watches; it has no other meaning.
  generation: A number that grows when the wanted state changes. The server sets it.
  creationTimestamp: CreationTimestamp is a timestamp, in UTC, of the object's creation. The server sets it.
  deletionTimestamp: When the object will be gone at the latest. The server sets it on a deletion
      that has to wait for finalizers or a grace period.
  deletionGracePeriodSeconds: Seconds that the object had for a graceful end when it was deleted.
  labels: Names and values by which selectors find objects.
  annotations: Names and values that tools attach to the object. Selectors do not see them.
  ownerReferences: The objects that own this one. It is deleted when all of them are gone.
  finalizers: Names that must be removed before a deleted object goes. Controllers remove their own.
  managedFields: Which client set which fields, for server-side apply.
meta.ListMeta: Metadata of a list.
  resourceVersion: The version of the store at which the list was read. A watch can begin here.
  continue: A token for the next page; absent on the last one.
  remainingItemCount: How many objects follow this page, if the server knows.
  selfLink: No longer in use.
meta.OwnerReference: Names an object that owns this one, in the same namespace or cluster-wide.
  apiVersion: The group and version of the owner.
  kind: The kind of the owner.
  name: The name of the owner.
  uid: The uid of the owner.
  controller: Whether the owner is the controller that manages this object. One owner may be.
  blockOwnerDeletion: Whether a foreground deletion of the owner waits for this object.
meta.ManagedFieldsEntry: The fields that one client set by one kind of operation.
  manager: The name of the client.
  operation: Apply, or Update for all other writes.
  apiVersion: The version of the kind in which the fields are named.
  time: When the entry last changed.
  fieldsType: The format of fieldsV1; always FieldsV1.
  fieldsV1: The set of fields, as a tree.
  subresource: The subresource through which the fields were set.
meta.FieldsV1: A set of fields as a tree of names such as "f:spec".
meta.Time: A time in UTC, as RFC 3339 in whole seconds.
meta.MicroTime: A time in UTC, as RFC 3339 in microseconds.
meta.LabelSelector: Selects objects by their labels. All its conditions must hold.
  matchLabels: Labels that an object must have, with these values.
  matchExpressions: Conditions on labels.
meta.LabelSelectorRequirement: A condition on one label.
  key: The name of the label.
  operator: In, NotIn, Exists or DoesNotExist.
  values: The values for In and NotIn.
meta.Condition: One aspect of an object's state.
  type: What the condition is about, such as Ready.
  status: True, False or Unknown.
  observedGeneration: The generation of the object that the condition is about.
  lastTransitionTime: When the status last changed.
  reason: A word in CamelCase for why it changed.
  message: The same for a reader.
meta.Status: The result of a request that does not return an object.
  status: Success or Failure.
  message: What happened, for a reader.
  reason: What happened, as one word for programs.
  details: More for programs, such as the name of the object.
  code: The HTTP status.
meta.StatusDetails: More about a result, for programs.
  retryAfterSeconds: How long to wait before the request is retried.
  causes: Single problems, such as fields with wrong values.
meta.StatusCause: One problem.
  field: The field that it is about, such as spec.ports[0].port.
meta.DeleteOptions: How to delete objects.
  gracePeriodSeconds: Seconds for a graceful end; 0 deletes at once.
  preconditions: What must hold of the object, else the request fails.
  orphanDependents: No longer in use; see propagationPolicy.
  propagationPolicy: What happens to owned objects: Orphan, Background or Foreground.
  dryRun: With "All", nothing is deleted.
meta.Preconditions: What must hold of an object before it is changed.
  uid: The uid that it must have.
  resourceVersion: The resourceVersion that it must have.
meta.WatchEvent: One change that a watch reports.
  type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
  object: The object after the change; before it for DELETED.
meta.APIResource: A resource of a group and version.
meta.APIResourceList: The resources of a group and version.
meta.APIGroup: A group with its versions.
meta.APIGroupList: The groups of this server.
resource.Quantity: An amount such as 500m, 2Gi or 1e3.
intstr.IntOrString: A number or a text.
runtime.RawExtension: An object of any kind.
`;

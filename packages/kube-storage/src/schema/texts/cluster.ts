/** Descriptions of kinds about permissions, webhooks, custom resources and reviews. */
export const clusterTexts = `
rbac.Role: Permissions in one namespace.
  rules: What the role permits.
rbac.ClusterRole: Permissions in all namespaces, or in those where a RoleBinding refers to it.
  rules: What the role permits.
  aggregationRule: Makes the rules from those of other roles. A controller then sets rules.
rbac.AggregationRule: Chooses the roles whose rules are combined.
  clusterRoleSelectors: Roles that match any of these are combined.
rbac.PolicyRule: Verbs on resources or paths that are permitted.
  verbs: Verbs such as get or update; "*" for all.
  apiGroups: Groups of the resources; "" is the core group, "*" all.
  resources: Resources such as configmaps or pods/status; "*" for all.
  resourceNames: Names of objects; absent for all.
  nonResourceURLs: Paths such as /healthz; a last part "*" stands for all below it.
      Cluster roles only.
rbac.RoleBinding: Grants a role's permissions in one namespace.
  subjects: Who gets the permissions.
  roleRef: The Role in this namespace, or the ClusterRole. It cannot be changed.
rbac.ClusterRoleBinding: Grants a cluster role's permissions in all namespaces.
  subjects: Who gets the permissions.
  roleRef: The ClusterRole. It cannot be changed.
rbac.RoleRef: Names a role.
  apiGroup: rbac.authorization.k8s.io.
  kind: Role or ClusterRole.
  name: The role's name.
rbac.Subject: A user, a group or a service account.
  kind: User, Group or ServiceAccount.
  apiGroup: rbac.authorization.k8s.io for users and groups, "" for service accounts.
  name: The name of the user, group or service account.
  namespace: The namespace of the service account.
admissionregistration.ValidatingWebhookConfiguration: Webhooks that may refuse writes.
  webhooks: The webhooks.
admissionregistration.MutatingWebhookConfiguration: Webhooks that may change or refuse writes.
  webhooks: The webhooks. They run in the order of their configurations' names.
admissionregistration.ValidatingWebhook: A webhook and when it is called.
  name: A qualified name, such as check.example.com.
  clientConfig: How the webhook is reached.
  rules: The writes for which it is called.
  failurePolicy: Fail or Ignore: what happens to a write when the webhook cannot be called.
  matchPolicy: Exact, or Equivalent to be called for other versions of the resources too.
  namespaceSelector: Labels of namespaces whose objects it is called for.
  objectSelector: Labels of objects that it is called for.
  sideEffects: None or NoneOnDryRun.
  timeoutSeconds: Seconds to wait for the webhook, 1 to 30.
  admissionReviewVersions: Versions of AdmissionReview that it understands, the preferred first.
  matchConditions: Conditions in CEL that must hold for a call.
admissionregistration.MutatingWebhook: A webhook and when it is called.
  name: A qualified name, such as default.example.com.
  clientConfig: How the webhook is reached.
  rules: The writes for which it is called.
  failurePolicy: Fail or Ignore: what happens to a write when the webhook cannot be called.
  matchPolicy: Exact, or Equivalent to be called for other versions of the resources too.
  namespaceSelector: Labels of namespaces whose objects it is called for.
  objectSelector: Labels of objects that it is called for.
  sideEffects: None or NoneOnDryRun.
  timeoutSeconds: Seconds to wait for the webhook, 1 to 30.
  admissionReviewVersions: Versions of AdmissionReview that it understands, the preferred first.
  reinvocationPolicy: Never, or IfNeeded to be called again when later webhooks change the object.
  matchConditions: Conditions in CEL that must hold for a call.
admissionregistration.RuleWithOperations: Operations on resources.
  operations: CREATE, UPDATE, DELETE, CONNECT, or "*" for all.
  apiGroups: Groups of the resources; "" is the core group, "*" all.
  apiVersions: Versions of the resources; "*" for all.
  resources: Resources such as pods or pods/status; "*" for all without subresources.
  scope: Cluster, Namespaced, or "*" for both.
admissionregistration.WebhookClientConfig: How a webhook is reached: by URL or by service.
  url: An https URL with host, port and path.
  service: A service in the cluster.
  caBundle: The certificates that the webhook's certificate is checked with, in PEM.
admissionregistration.ServiceReference: Names a service, its port and the path of the webhook.
admissionregistration.MatchCondition: A condition in CEL.
apiextensions.CustomResourceDefinition: Defines a resource that this server then offers.
apiextensions.CustomResourceDefinitionSpec: Group, names, scope and versions of the resource.
  group: The API group. The definition's name is the plural, ".", and this group.
  names: The names of the resource and its kind.
  scope: Cluster or Namespaced.
  versions: The versions of the resource.
  conversion: How objects are converted between versions.
  preserveUnknownFields: Must be false.
apiextensions.CustomResourceDefinitionNames: The names of a resource and its kind.
  plural: The name in paths, in lower case, such as widgets.
  singular: The name of one, in lower case, such as widget.
  shortNames: Short names for kubectl.
  kind: The kind, in CamelCase, such as Widget.
  listKind: The kind of lists, such as WidgetList.
  categories: Groups of resources for kubectl, such as all.
apiextensions.CustomResourceDefinitionVersion: One version of a resource.
  name: Such as v1 or v1beta1.
  served: Whether requests may use this version.
  storage: Whether objects are stored in this version. Exactly one version is.
  deprecated: Whether requests get a warning.
  deprecationWarning: The text of that warning.
  schema: The schema of the version's objects.
  subresources: The subresources status and scale.
  additionalPrinterColumns: Columns that kubectl get prints.
  selectableFields: Fields for field selectors.
apiextensions.CustomResourceValidation: A schema.
  openAPIV3Schema: The schema in OpenAPI v3. It must be structural.
apiextensions.CustomResourceConversion: How objects are converted between versions.
  strategy: None changes only apiVersion; Webhook calls a webhook.
  webhook: The webhook.
apiextensions.CustomResourceSubresources: The subresources of a version.
  status: Turns on /status, which alone changes the status.
  scale: Turns on /scale.
apiextensions.CustomResourceSubresourceScale: Where the scale is found in an object.
  specReplicasPath: The path of the wanted number, such as .spec.replicas.
  statusReplicasPath: The path of the present number, such as .status.replicas.
  labelSelectorPath: The path of the selector of the replicas, as a text.
apiextensions.CustomResourceColumnDefinition: A column that kubectl get prints.
  jsonPath: Where the value is found in an object.
  priority: 0 is always printed; higher ones in wide output.
apiextensions.CustomResourceDefinitionStatus: What was last observed of a definition.
  conditions: Established and NamesAccepted, among others.
  acceptedNames: The names under which the resource is served.
  storedVersions: Versions in which objects may be stored.
apiextensions.JSONSchemaProps: A JSON schema with the extensions of Kubernetes.
authentication.TokenReview: Asks whose token this is.
authentication.TokenRequest: Asks for a token of a service account.
authentication.TokenRequestSpec: What the token is for.
  audiences: Who may accept the token. Absent: this server.
  expirationSeconds: Seconds for which the token is valid.
  boundObjectRef: An object without which the token is not valid.
authentication.TokenRequestStatus: The token.
  token: The token.
  expirationTimestamp: When the token expires.
authentication.SelfSubjectReview: Asks which user the server takes the caller for.
authentication.UserInfo: A user.
  username: The user's name.
  uid: A value that distinguishes users of one name over time.
  groups: The user's groups.
  extra: More that the authenticator knows.
authorization.SubjectAccessReview: Asks whether a user may do something.
authorization.SelfSubjectAccessReview: Asks whether the caller may do something.
authorization.LocalSubjectAccessReview: Asks whether a user may do something in a namespace.
authorization.SelfSubjectRulesReview: Asks for all that the caller may do in a namespace.
authorization.SubjectAccessReviewStatus: The decision.
  allowed: Whether the action is permitted.
  denied: Whether the action is refused, rather than not permitted.
  reason: Why.
authorization.ResourceAttributes: An action on a resource.
authorization.NonResourceAttributes: An action on a path.
autoscaling.Scale: How many replicas an object has and should have.
autoscaling.ScaleSpec: What is wanted.
  replicas: The wanted number.
autoscaling.ScaleStatus: What was last observed.
  replicas: The present number.
  selector: The selector of the replicas, as a text.
`;

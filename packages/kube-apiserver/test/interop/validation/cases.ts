/**
 * Objects of built-in kinds, good and bad. A line of a text is one case: changes of the kind's good
 * object, with ";" between.
 *
 *     spec.containers.0.name = "A b"     a field gets the JSON value; a list's item has its index
 *     spec.selector =                    a field goes
 */

export interface KindCases {
  readonly resource: string;
  /** "" for the core group. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly isClusterScoped?: boolean;
  /** The good object, without its head. */
  readonly good: Readonly<Record<string, unknown>>;
  readonly creates: string;
  readonly updates: string;
}

const CONTAINER = { name: "c", image: "i:1" };
const TEMPLATE = { metadata: { labels: { a: "b" } }, spec: { containers: [CONTAINER] } };
const SELECTED = { selector: { matchLabels: { a: "b" } }, template: TEMPLATE };
const LONG = "a".repeat(64);

/** What holds for the spec of any pod; "@" stands for its place. */
const POD_SPECS = `
@.containers =
@.containers = []
@.containers.0.name =
@.containers.0.name = "A_b"
@.containers.0.name = "a.b"
@.containers.0.name = "${LONG}"
@.containers.0.image =
@.containers.0.image = " i"
@.containers.1 = {"name":"c","image":"j"}
@.containers.1 = {"name":"d","image":"j"}
@.containers.0.imagePullPolicy = "Sometimes"
@.containers.0.terminationMessagePolicy = "Fle"
@.containers.0.ports = [{"containerPort":0}]
@.containers.0.ports = [{"containerPort":70000}]
@.containers.0.ports = [{"containerPort":-1,"hostPort":70000}]
@.containers.0.ports = [{"containerPort":80,"name":"A B"}]
@.containers.0.ports = [{"containerPort":80,"name":"1234"}]
@.containers.0.ports = [{"containerPort":80,"name":"a--b"}]
@.containers.0.ports = [{"containerPort":80,"name":"-ab"}]
@.containers.0.ports = [{"containerPort":80,"name":"abcdefghijklmnop"}]
@.containers.0.ports = [{"containerPort":80,"name":"http"},{"containerPort":81,"name":"http"}]
@.containers.0.ports = [{"containerPort":80,"protocol":"tcp"}]
@.containers.0.ports = [{"containerPort":80,"hostPort":80},{"containerPort":81,"hostPort":80}]
@.containers.0.ports = [{"containerPort":80,"hostPort":81}] ; @.hostNetwork = true
@.containers.0.env = [{"name":"","value":"x"}]
@.containers.0.env = [{"name":"a=b","value":"x"}]
@.containers.0.env = [{"name":"a b","value":"x"}]
@.containers.0.env = [{"name":"a","value":"x"},{"name":"a","value":"y"}]
@.containers.0.env = [{"name":"a","valueFrom":{}}]
@.containers.0.env = [{"name":"a","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['A b']"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.foo"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":""}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"fieldRef":{"fieldPath":"status.podIPs"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"resourceFieldRef":{"resource":""}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"resourceFieldRef":{"resource":"limits.foo"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"2"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"configMapKeyRef":{"name":"","key":""}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"configMapKeyRef":{"name":"A","key":"a b"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]
@.containers.0.env = [{"name":"a","valueFrom":{"secretKeyRef":{"name":"s","key":"k"},"configMapKeyRef":{"name":"s","key":"k"}}}]
@.containers.0.envFrom = [{}]
@.containers.0.envFrom = [{"configMapRef":{"name":""}}]
@.containers.0.envFrom = [{"configMapRef":{"name":"A B"}}]
@.containers.0.envFrom = [{"secretRef":{"name":"a"},"prefix":"a=b"}]
@.containers.0.envFrom = [{"secretRef":{"name":"a"},"configMapRef":{"name":"a"}}]
@.containers.0.resources = {"requests":{"cpu":"2"},"limits":{"cpu":"1"}}
@.containers.0.resources = {"requests":{"cpu":"1"},"limits":{"cpu":"1"}}
@.containers.0.resources = {"requests":{"memory":"1Gi"},"limits":{"memory":"1000Mi"}}
@.containers.0.resources = {"requests":{"cpu":"-1"}}
@.containers.0.resources = {"requests":{"foo":"1"}}
@.containers.0.resources = {"limits":{"example.com/gpu":"1.5"}}
@.containers.0.resources = {"limits":{"example.com/gpu":"2"}}
@.containers.0.resources = {"requests":{"example.com/gpu":"1"}}
@.containers.0.resources = {"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"2"}}
@.containers.0.resources = {"limits":{"a b":"2"}}
@.containers.0.resources = {"limits":{"kubernetes.io/foo":"2"}}
@.containers.0.resources = {"limits":{"hugepages-2Mi":"2Mi"}}
@.containers.0.resources = {"limits":{"hugepages-2Mi":"2Mi","cpu":"1"}}
@.containers.0.resources = {"limits":{"pods":"2"}}
@.containers.0.volumeMounts = [{"name":"v","mountPath":"/x"}]
@.containers.0.volumeMounts = [{"name":"","mountPath":""}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x"},{"name":"v","mountPath":"/x"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x","subPath":"/a"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x","subPath":"a/../b"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x","subPath":"a","subPathExpr":"b"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x","mountPropagation":"Both"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeMounts = [{"name":"v","mountPath":"/x","mountPropagation":"Bidirectional"}]
@.volumes = [{"name":"v"}] ; @.containers.0.volumeDevices = [{"name":"v","devicePath":"/x"}]
@.containers.0.volumeDevices = [{"name":"v","devicePath":""}]
@.volumes = [{"name":"v"},{"name":"v"}]
@.volumes = [{"name":""}]
@.volumes = [{"name":"A b"}]
@.volumes = [{"name":"v","emptyDir":{},"hostPath":{"path":"/x"}}]
@.volumes = [{"name":"v","emptyDir":{"sizeLimit":"-1"}}]
@.volumes = [{"name":"v","hostPath":{"path":""}}]
@.volumes = [{"name":"v","hostPath":{"path":"/a/../b"}}]
@.volumes = [{"name":"v","hostPath":{"path":"/a","type":"Foo"}}]
@.volumes = [{"name":"v","hostPath":{"path":"/a","type":"Directory"}}]
@.volumes = [{"name":"v","secret":{}}]
@.volumes = [{"name":"v","secret":{"secretName":"s","defaultMode":512}}]
@.volumes = [{"name":"v","secret":{"secretName":"s","items":[{"key":"","path":""}]}}]
@.volumes = [{"name":"v","secret":{"secretName":"s","items":[{"key":"a","path":"/b"}]}}]
@.volumes = [{"name":"v","secret":{"secretName":"s","items":[{"key":"a","path":"../b","mode":-1}]}}]
@.volumes = [{"name":"v","secret":{"secretName":"s","items":[{"key":"a","path":"..b"}]}}]
@.volumes = [{"name":"v","configMap":{"name":""}}]
@.volumes = [{"name":"v","configMap":{"name":"a","items":[{"key":"k","path":"p"}]}}]
@.volumes = [{"name":"v","persistentVolumeClaim":{"claimName":""}}]
@.volumes = [{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]
@.volumes = [{"name":"v","nfs":{"server":"","path":"a"}}]
@.volumes = [{"name":"v","downwardAPI":{"items":[{"path":"a"}]}}]
@.volumes = [{"name":"v","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"metadata.labels"}}]}}]
@.volumes = [{"name":"v","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"spec.nodeName"}}]}}]
@.volumes = [{"name":"v","downwardAPI":{"items":[{"path":"","resourceFieldRef":{"resource":"limits.cpu"}}]}}]
@.volumes = [{"name":"v","projected":{"sources":[{"secret":{"name":""}}]}}]
@.volumes = [{"name":"v","projected":{"sources":[{"secret":{"name":"a","items":[{"key":"a","path":"p"},{"key":"b","path":"p"}]}}]}}]
@.volumes = [{"name":"v","projected":{"sources":[{"secret":{"name":"a"},"configMap":{"name":"b"}}]}}]
@.volumes = [{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t",\
"expirationSeconds":60}}]}}] ; @.serviceAccountName = "s"
@.volumes = [{"name":"v","csi":{"driver":""}}]
@.volumes = [{"name":"v","csi":{"driver":"a_b"}}]
@.volumes = [{"name":"v","csi":{"driver":"d.example.com"}}]
@.volumes = [{"name":"v","ephemeral":{}}]
@.volumes = [{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]
@.volumes = [{"name":"v","image":{"reference":""}}]
@.volumes = [{"name":"v","image":{"reference":"a","pullPolicy":"Foo"}}]
@.volumes = [{"name":"v","iscsi":{"targetPortal":"","iqn":"","lun":0}}]
@.restartPolicy = "Sometimes"
@.dnsPolicy = "Foo"
@.dnsPolicy = "None"
@.dnsPolicy = "None" ; @.dnsConfig = {"nameservers":["1.2.3.4"]}
@.dnsConfig = {"nameservers":["1.2.3.4","1.2.3.5","1.2.3.6","1.2.3.7"]}
@.dnsConfig = {"nameservers":["x"],"searches":["A b"],"options":[{"name":""}]}
@.nodeSelector = {"a b":"c d"}
@.serviceAccountName = "A b"
@.nodeName = "A b"
@.activeDeadlineSeconds = 0
@.activeDeadlineSeconds = 5
@.hostname = "a.b"
@.subdomain = "A"
@.hostAliases = [{"ip":"x","hostnames":["A b"]}]
@.hostAliases = [{"ip":"1.2.3.4","hostnames":["a.b"]}]
@.priorityClassName = "A b"
@.runtimeClassName = "A b"
@.preemptionPolicy = "Foo"
@.imagePullSecrets = [{"name":"a"}]
@.tolerations = [{"key":"a b"}]
@.tolerations = [{}]
@.tolerations = [{"operator":"Exists"}]
@.tolerations = [{"key":"a","operator":"Exists","value":"x"}]
@.tolerations = [{"key":"a","operator":"Foo"}]
@.tolerations = [{"key":"a","operator":"Gt","value":"1"}]
@.tolerations = [{"key":"a","effect":"Foo"}]
@.tolerations = [{"key":"a","effect":"NoSchedule","tolerationSeconds":5}]
@.tolerations = [{"key":"a","value":"c d"}]
@.readinessGates = [{"conditionType":"A b"}]
@.schedulingGates = [{"name":"a"},{"name":"a"}]
@.schedulingGates = [{"name":""}]
@.terminationGracePeriodSeconds = -5
@.topologySpreadConstraints = [{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"Foo"}]
@.topologySpreadConstraints = [{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule","minDomains":0,"nodeTaintsPolicy":"Foo"}]
@.topologySpreadConstraints = [{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway","minDomains":2}]
@.topologySpreadConstraints = [{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"},{"maxSkew":2,\
"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}]
@.topologySpreadConstraints = [{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule",\
"labelSelector":{"matchLabels":{"a b":"c"}}}]
@.affinity = {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}
@.affinity = {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions"\
:[{"key":"a b","operator":"Foo"}]}]}}}
@.affinity = {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions"\
:[{"key":"a","operator":"In"},{"key":"a","operator":"Gt"},{"key":"a","operator":"Exists","values":["x"]},{"key":"a",\
"operator":"In","values":["c d"]}]}]}}}
@.affinity = {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"\
key":"metadata.name","operator":"In","values":["n"]}]}]}}}
@.affinity = {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"\
key":"spec.x","operator":"Exists"}]}]}}}
@.affinity = {"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,\
"preference":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}]}}
@.affinity = {"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":""}]}}
@.affinity = {"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a b",\
"labelSelector":{"matchLabels":{"a b":"c"}},"namespaces":["A"]}]}}
@.affinity = {"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":101,"podAffinityTerm":{"topologyKey":"z"}}]}}
@.securityContext = {"runAsUser":-1,"runAsGroup":-1,"fsGroup":-1,"supplementalGroups":[-1]}
@.securityContext = {"sysctls":[{"name":"A b","value":"x"},{"name":"","value":""}]}
@.securityContext = {"sysctls":[{"name":"kernel.shm","value":"x"},{"name":"kernel.shm","value":"x"}]}
@.securityContext = {"fsGroupChangePolicy":"Foo"}
@.securityContext = {"seccompProfile":{"type":"Foo"}}
@.securityContext = {"seccompProfile":{"type":"Localhost"}}
@.securityContext = {"seccompProfile":{"type":"RuntimeDefault"}}
@.securityContext = {"supplementalGroupsPolicy":"Foo"}
@.shareProcessNamespace = true ; @.hostPID = true
@.hostUsers = false ; @.hostPID = true
@.containers.0.securityContext = {"privileged":true,"allowPrivilegeEscalation":false}
@.containers.0.securityContext = {"runAsUser":-5,"procMount":"Foo"}
@.containers.0.securityContext = {"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}
@.containers.0.securityContext = {"seccompProfile":{"type":"Localhost","localhostProfile":"/a"},"appArmorProfile":{"type":"Foo"}}
@.containers.0.livenessProbe = {}
@.containers.0.livenessProbe = {"exec":{"command":[]}}
@.containers.0.livenessProbe = {"exec":{"command":["a"]},"httpGet":{"port":80}}
@.containers.0.livenessProbe = {"exec":{"command":["a"]},"successThreshold":2}
@.containers.0.livenessProbe = {"exec":{"command":["a"]},"initialDelaySeconds":-1,"terminationGracePeriodSeconds":0}
@.containers.0.livenessProbe = {"httpGet":{"port":0,"scheme":"http"}}
@.containers.0.livenessProbe = {"httpGet":{"port":"A B","httpHeaders":[{"name":"a b","value":"c"}]}}
@.containers.0.readinessProbe = {"tcpSocket":{"port":70000}}
@.containers.0.readinessProbe = {"tcpSocket":{"port":"http"},"terminationGracePeriodSeconds":5}
@.containers.0.readinessProbe = {"grpc":{"port":0}}
@.containers.0.startupProbe = {"tcpSocket":{"port":1},"successThreshold":3}
@.containers.0.lifecycle = {"postStart":{}}
@.containers.0.lifecycle = {"preStop":{"sleep":{"seconds":50}}}
@.containers.0.lifecycle = {"preStop":{"sleep":{"seconds":5}}}
@.containers.0.lifecycle = {"preStop":{"exec":{"command":[]}}}
@.containers.0.lifecycle = {"stopSignal":"SIGTERM"}
@.containers.0.resizePolicy = [{"resourceName":"cpu","restartPolicy":"NotRequired"},{"resourceName":"cpu","restartPolicy":"NotRequired"}]
@.containers.0.resizePolicy = [{"resourceName":"foo","restartPolicy":"Foo"}]
@.containers.0.restartPolicy = "Foo"
@.initContainers = [{"name":"c","image":"i"}]
@.initContainers = [{"name":"i"}]
@.initContainers = [{"name":"i","image":"i","livenessProbe":{"tcpSocket":{"port":1}},"lifecycle":{"preStop":{"exec":{"command":["a"]}}}}]
@.initContainers = [{"name":"i","image":"i","restartPolicy":"Always","livenessProbe":{"tcpSocket":{"port":1}}}]
@.initContainers = [{"name":"i","image":"i","restartPolicy":"Foo"}]
@.ephemeralContainers = [{"name":"e","image":"i"}]
@.os = {"name":"beos"}
@.os = {"name":"windows"} ; @.hostPID = true
@.setHostnameAsFQDN = true ; @.hostnameOverride = "a.b"
@.overhead = {"cpu":"-1"}
@.resources = {"limits":{"cpu":"-1"}}
`;

function podSpecs(place: string): string {
  return POD_SPECS.replaceAll("@", place);
}

/** Some of them, for the kinds whose templates are checked by the same code. */
const SOME = `
spec.template.spec.containers = []
spec.template.spec.containers.0.image =
spec.template.spec.containers.0.name = "A"
spec.template.spec.containers.0.ports = [{"containerPort":0}]
spec.template.spec.volumes = [{"name":"v"},{"name":"v"}]
spec.template.spec.activeDeadlineSeconds = 5
spec.template.spec.restartPolicy = "Never"
spec.template.spec.ephemeralContainers = [{"name":"e","image":"i"}]
spec.template.metadata.labels = {"a":"c d"}
spec.template.metadata.annotations = {"a b":"c"}
`;

const SELECTORS = `
spec.selector =
spec.selector = {}
spec.selector = {"matchLabels":{"x":"y"}}
spec.selector = {"matchLabels":{"a":"c d"}}
spec.selector = {"matchLabels":{"a b":"c"}}
spec.selector = {"matchExpressions":[{"key":"a","operator":"Foo"}]}
spec.selector = {"matchExpressions":[{"key":"a","operator":"In"}]}
spec.selector = {"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}
spec.template.metadata =
spec.minReadySeconds = -1
${SOME}`;

const RESELECTED = `
spec.selector = {"matchLabels":{"a":"c"}} ; spec.template.metadata.labels = {"a":"c"}
spec.template.metadata.labels = {"a":"c"}
spec.template.spec.containers.0.image = "j"
metadata.labels = {"a":"b"}
`;

const REPLICAS = `
spec.replicas = -1
spec.replicas = 0
${SELECTORS}`;

const RBAC = "rbac.authorization.k8s.io/v1";
const ROLE_REF = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" };
const METRIC = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
};

export const KINDS: readonly KindCases[] = [
  {
    resource: "pods",
    apiVersion: "v1",
    kind: "Pod",
    good: { spec: { containers: [CONTAINER] } },
    creates: `
metadata.name = "A b"
metadata.name =
metadata.labels = {"a b":"c"}
metadata.annotations = {"a b":"c"}
spec =
spec.nodeName = "n" ; spec.schedulingGates = [{"name":"g"}]
spec.volumes = [{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]
${podSpecs("spec")}`,
    updates: `
metadata.labels = {"a":"b"}
spec.containers.0.image = "j"
spec.containers.0.image = ""
spec.containers.0.image = " j"
spec.containers.0.name = "d"
spec.containers.1 = {"name":"d","image":"i"}
spec.containers.0.env = [{"name":"A","value":"b"}]
spec.nodeName = "n"
spec.restartPolicy = "Never"
spec.activeDeadlineSeconds = 5
spec.activeDeadlineSeconds = -5
spec.tolerations.9 = {"key":"a","operator":"Exists"}
spec.tolerations = []
spec.schedulingGates = [{"name":"g"}]
spec.terminationGracePeriodSeconds = 5
spec.serviceAccountName = "x"
spec.volumes = [{"name":"v"}]
spec.priority = 5
status.phase = "Foo"
`,
  },
  {
    resource: "podtemplates",
    apiVersion: "v1",
    kind: "PodTemplate",
    good: { template: TEMPLATE },
    creates: SOME.replaceAll("spec.template", "template"),
    updates: `
template.spec.containers.0.image = "j"
template.spec.containers = []
`,
  },
  {
    resource: "replicationcontrollers",
    apiVersion: "v1",
    kind: "ReplicationController",
    good: { spec: { selector: { a: "b" }, template: TEMPLATE } },
    creates: `
spec.replicas = -1
spec.minReadySeconds = -1
spec.selector = {}
spec.selector =
spec.selector = {"x":"y"}
spec.template =
${SOME}`,
    updates: `
spec.replicas = -1
spec.selector = {"x":"y"}
spec.selector = {"a":"c"} ; spec.template.metadata.labels = {"a":"c"}
`,
  },
  {
    resource: "deployments",
    apiVersion: "apps/v1",
    kind: "Deployment",
    good: { spec: SELECTED },
    creates: `
metadata.name = "A b"
spec =
spec.template =
spec.strategy = {"type":"Foo"}
spec.strategy = {"type":"Recreate","rollingUpdate":{}}
spec.strategy = {"type":"Recreate"}
spec.strategy = {"rollingUpdate":{"maxUnavailable":0,"maxSurge":0}}
spec.strategy = {"rollingUpdate":{"maxUnavailable":"0%","maxSurge":0}}
spec.strategy = {"rollingUpdate":{"maxUnavailable":"200%"}}
spec.strategy = {"rollingUpdate":{"maxUnavailable":-1,"maxSurge":"x"}}
spec.revisionHistoryLimit = -1
spec.progressDeadlineSeconds = -1
spec.progressDeadlineSeconds = 5 ; spec.minReadySeconds = 5
${REPLICAS}
${podSpecs("spec.template.spec")}`,
    updates: `
spec.replicas = 5
spec.replicas = -1
spec.strategy = {"type":"Foo"}
${RESELECTED}`,
  },
  {
    resource: "replicasets",
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    good: { spec: SELECTED },
    creates: REPLICAS,
    updates: `
spec.replicas = -1
${RESELECTED}`,
  },
  {
    resource: "statefulsets",
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    good: { spec: { ...SELECTED, serviceName: "s" } },
    creates: `
metadata.name = "a.b"
spec.serviceName = "A b"
spec.serviceName =
spec.podManagementPolicy = "Foo"
spec.updateStrategy = {"type":"Foo"}
spec.updateStrategy = {"type":"OnDelete","rollingUpdate":{"partition":1}}
spec.updateStrategy = {"type":"OnDelete"}
spec.updateStrategy = {"rollingUpdate":{"partition":-1}}
spec.updateStrategy = {"type":"RollingUpdate","rollingUpdate":{"partition":-1}}
spec.persistentVolumeClaimRetentionPolicy = {"whenDeleted":"Foo"}
spec.ordinals = {"start":-1}
spec.volumeClaimTemplates = [{"metadata":{"name":"v"},"spec":{}}]
spec.volumeClaimTemplates = [{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],\
"resources":{"requests":{"storage":"1Gi"}}}}] ; spec.template.spec.containers.0.volumeMounts = [{"name":"v","mountPath":"/x"}]
${REPLICAS}`,
    updates: `
spec.replicas = 5
spec.replicas = -1
spec.serviceName = "t"
spec.podManagementPolicy = "Parallel"
spec.minReadySeconds = 5
spec.ordinals = {"start":1}
spec.volumeClaimTemplates = [{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]
${RESELECTED}`,
  },
  {
    resource: "daemonsets",
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    good: { spec: SELECTED },
    creates: `
spec.updateStrategy = {"type":"Foo"}
spec.updateStrategy = {"type":"OnDelete"}
spec.updateStrategy = {"rollingUpdate":{"maxUnavailable":0}}
spec.updateStrategy = {"rollingUpdate":{"maxUnavailable":1,"maxSurge":1}}
spec.updateStrategy = {"rollingUpdate":{"maxUnavailable":0,"maxSurge":"200%"}}
spec.revisionHistoryLimit = -1
${SELECTORS}`,
    updates: `
spec.updateStrategy = {"type":"OnDelete"}
${RESELECTED}`,
  },
  {
    resource: "controllerrevisions",
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    good: { data: { a: 1 }, revision: 1 },
    creates: `
revision = -1
data =
metadata.name = "A b"
`,
    updates: `
revision = 2
data = {"a":2}
`,
  },
  {
    resource: "jobs",
    apiVersion: "batch/v1",
    kind: "Job",
    good: { spec: { template: { spec: { containers: [CONTAINER], restartPolicy: "Never" } } } },
    creates: `
spec.parallelism = -1
spec.completions = -1
spec.activeDeadlineSeconds = -1
spec.backoffLimit = -1
spec.ttlSecondsAfterFinished = -1
spec.completionMode = "Foo"
spec.completionMode = "Indexed"
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.parallelism = 100001
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.backoffLimitPerIndex = 1 ; spec.maxFailedIndexes = 5
spec.backoffLimitPerIndex = 1
spec.maxFailedIndexes = 1
spec.podReplacementPolicy = "Foo"
spec.podFailurePolicy = {"rules":[{"action":"Foo"}]}
spec.podFailurePolicy = {"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[]}}]}
spec.podFailurePolicy = {"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[0,5,3,3],"containerName":"x"}}]}
spec.podFailurePolicy = {"rules":[{"action":"FailJob","onPodConditions":[{"type":"A b","status":"Foo"}]}]}
spec.podFailurePolicy = {"rules":[{"action":"Ignore","onExitCodes":{"operator":"Foo","values":[1]}}]}
spec.successPolicy = {"rules":[{"succeededCount":1}]}
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.successPolicy = {"rules":[{"succeededCount":1}]}
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.successPolicy = {"rules":[{}]}
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.successPolicy = {"rules":[]}
spec.completionMode = "Indexed" ; spec.completions = 3 ; spec.successPolicy = {"rules":[{"succeededIndexes":"0-9","succeededCount":0}]}
spec.managedBy = "foo"
spec.managedBy = "example.com/foo"
spec.selector = {"matchLabels":{"x":"y"}}
spec.manualSelector = true
spec.manualSelector = true ; spec.selector = {"matchLabels":{"x":"y"}} ; spec.template.metadata = {"labels":{"x":"y"}}
spec.manualSelector = true ; spec.selector = {"matchLabels":{"x":"z"}} ; spec.template.metadata = {"labels":{"x":"y"}}
spec.template.metadata = {"labels":{"controller-uid":"x"}}
spec.template.metadata = {"labels":{"batch.kubernetes.io/job-name":"x"}}
spec.template.spec.restartPolicy =
spec.template.spec.restartPolicy = "Always"
spec.template.spec.restartPolicy = "OnFailure"
spec.template.spec.restartPolicy = "Foo"
spec.template.spec.containers = []
spec.template.spec.containers.0.image =
spec.template =
`,
    updates: `
spec.parallelism = 5
spec.parallelism = -1
spec.completions = 5
spec.suspend = true
spec.selector = {"matchLabels":{"x":"y"}}
spec.template.spec.containers.0.image = "j"
spec.completionMode = "Indexed"
spec.backoffLimit = 3
spec.ttlSecondsAfterFinished = 4
spec.managedBy = "example.com/foo"
`,
  },
  {
    resource: "cronjobs",
    apiVersion: "batch/v1",
    kind: "CronJob",
    good: {
      spec: {
        schedule: "*/5 * * * *",
        jobTemplate: {
          spec: { template: { spec: { containers: [CONTAINER], restartPolicy: "Never" } } },
        },
      },
    },
    creates: `
metadata.name = "${"a".repeat(53)}"
spec.schedule =
spec.schedule = "x"
spec.schedule = "* * * *"
spec.schedule = "* * * * * *"
spec.schedule = "60 * * * *"
spec.schedule = "* 24 * * *"
spec.schedule = "* * 0 * *"
spec.schedule = "* * 32 * *"
spec.schedule = "* * * 13 *"
spec.schedule = "* * * * 7"
spec.schedule = "* * * JAN MON-FRI"
spec.schedule = "* * * FOO *"
spec.schedule = "5-1 * * * *"
spec.schedule = "*/0 * * * *"
spec.schedule = "*/x * * * *"
spec.schedule = "1-2-3 * * * *"
spec.schedule = "1/2/3 * * * *"
spec.schedule = "1,2,,3 * * * *"
spec.schedule = "0 0 ? * ?"
spec.schedule = "-1 * * * *"
spec.schedule = "5/15 * * * *"
spec.schedule = "@daily"
spec.schedule = "@midnight"
spec.schedule = "@foo"
spec.schedule = "@every 1h"
spec.schedule = "@every x"
spec.schedule = "TZ=UTC * * * * *"
spec.schedule = "CRON_TZ=UTC * * * * *"
spec.schedule = "TZ=Foo/Bar * * * * *"
spec.timeZone = "Europe/Berlin"
spec.timeZone = ""
spec.timeZone = "Foo/Bar"
spec.timeZone = "../x"
spec.timeZone = "local"
spec.startingDeadlineSeconds = -1
spec.concurrencyPolicy = "Foo"
spec.successfulJobsHistoryLimit = -1
spec.failedJobsHistoryLimit = -1
spec.jobTemplate =
spec.jobTemplate.spec.selector = {"matchLabels":{"a":"b"}}
spec.jobTemplate.spec.manualSelector = true
spec.jobTemplate.spec.parallelism = -1
spec.jobTemplate.spec.template.spec.restartPolicy = "Always"
spec.jobTemplate.spec.template.spec.containers.0.image =
`,
    updates: `
spec.schedule = "1 * * * *"
spec.schedule = "x"
spec.suspend = true
spec.concurrencyPolicy = "Foo"
`,
  },
  {
    resource: "services",
    apiVersion: "v1",
    kind: "Service",
    good: { spec: { selector: { a: "b" }, ports: [{ port: 80 }] } },
    creates: `
metadata.name = "1a"
metadata.name = "a.b"
spec =
spec.ports =
spec.ports = [{"port":0}]
spec.ports = [{"port":70000}]
spec.ports = [{"port":80,"protocol":"tcp"}]
spec.ports = [{"port":80,"name":"A b"}]
spec.ports = [{"port":80},{"port":81}]
spec.ports = [{"port":80,"name":"a"},{"port":81,"name":"a"}]
spec.ports = [{"port":80,"name":"a"},{"port":80,"name":"b"}]
spec.ports = [{"port":80,"name":"a"},{"port":80,"name":"b","protocol":"UDP"}]
spec.ports = [{"port":80,"targetPort":70000}]
spec.ports = [{"port":80,"targetPort":"A b"}]
spec.ports = [{"port":80,"targetPort":"http"}]
spec.ports = [{"port":80,"appProtocol":"A b"}]
spec.ports = [{"port":80,"nodePort":30080}]
spec.type = "Foo"
spec.type = "NodePort"
spec.type = "NodePort" ; spec.ports = [{"port":80,"nodePort":30080}]
spec.type = "NodePort" ; spec.ports = [{"port":80,"nodePort":80}]
spec.type = "NodePort" ; spec.ports = [{"port":80,"nodePort":30080,"name":"a"},{"port":81,"nodePort":30080,"name":"b"}]
spec.type = "NodePort" ; spec.clusterIP = "None"
spec.type = "LoadBalancer"
spec.type = "LoadBalancer" ; spec.loadBalancerClass = "a/b"
spec.type = "LoadBalancer" ; spec.loadBalancerSourceRanges = ["x"]
spec.type = "LoadBalancer" ; spec.loadBalancerSourceRanges = ["10.0.0.0/8"]
spec.type = "LoadBalancer" ; spec.externalTrafficPolicy = "Local"
spec.type = "LoadBalancer" ; spec.externalTrafficPolicy = "Foo"
spec.type = "LoadBalancer" ; spec.clusterIP = "None"
spec.loadBalancerClass = "a/b"
spec.loadBalancerSourceRanges = ["10.0.0.0/8"]
spec.allocateLoadBalancerNodePorts = true
spec.type = "ExternalName"
spec.type = "ExternalName" ; spec.externalName = "a.b"
spec.type = "ExternalName" ; spec.externalName = "A b"
spec.type = "ExternalName" ; spec.externalName = "a.b" ; spec.clusterIP = "10.0.0.9"
spec.clusterIP = "None"
spec.clusterIP = "None" ; spec.ports =
spec.clusterIP = "x"
spec.clusterIP = "10.0.0.9"
spec.clusterIP = "10.0.0.09"
spec.clusterIP = "10.9.0.9"
spec.clusterIP = "::1"
spec.clusterIPs = ["10.0.0.9"]
spec.clusterIP = "10.0.0.9" ; spec.clusterIPs = ["10.0.0.8"]
spec.ipFamilies = ["IPv5"]
spec.ipFamilies = ["IPv4"]
spec.ipFamilies = ["IPv6"]
spec.ipFamilies = ["IPv4","IPv4"]
spec.ipFamilyPolicy = "Foo"
spec.ipFamilyPolicy = "RequireDualStack"
spec.ipFamilyPolicy = "PreferDualStack"
spec.selector = {"a b":"c d"}
spec.selector =
spec.sessionAffinity = "Foo"
spec.sessionAffinity = "ClientIP"
spec.sessionAffinity = "ClientIP" ; spec.sessionAffinityConfig = {"clientIP":{"timeoutSeconds":0}}
spec.sessionAffinity = "ClientIP" ; spec.sessionAffinityConfig = {"clientIP":{"timeoutSeconds":90000}}
spec.externalIPs = ["x"]
spec.externalIPs = ["127.0.0.1"]
spec.externalIPs = ["1.2.3.4"]
spec.externalTrafficPolicy = "Local"
spec.internalTrafficPolicy = "Foo"
spec.internalTrafficPolicy = "Local"
spec.trafficDistribution = "Foo"
spec.trafficDistribution = "PreferClose"
spec.healthCheckNodePort = 30000
`,
    updates: `
spec.clusterIP = "10.0.0.77"
spec.clusterIP = "10.0.0.77" ; spec.clusterIPs = ["10.0.0.77"]
spec.clusterIP = ; spec.clusterIPs =
spec.clusterIP = ""
spec.clusterIP = "None" ; spec.clusterIPs = ["None"]
spec.ports = [{"port":81}]
spec.ports = []
spec.type = "NodePort"
spec.type = "ExternalName" ; spec.externalName = "a.b"
spec.type = "ExternalName" ; spec.externalName = "a.b" ; spec.clusterIP = "" ; spec.clusterIPs =
spec.ipFamilies = ["IPv6"]
spec.ipFamilyPolicy = "Foo"
spec.sessionAffinity = "ClientIP"
spec.selector = {"x":"y"}
`,
  },
  {
    resource: "endpoints",
    apiVersion: "v1",
    kind: "Endpoints",
    good: { subsets: [{ addresses: [{ ip: "1.2.3.4" }], ports: [{ port: 80 }] }] },
    creates: `
subsets =
subsets = [{}]
subsets = [{"addresses":[{"ip":"x"}]}]
subsets = [{"addresses":[{"ip":"127.0.0.1"}]}]
subsets = [{"addresses":[{"ip":"0.0.0.0"}]}]
subsets = [{"addresses":[{"ip":"169.254.1.1"}]}]
subsets = [{"addresses":[{"ip":"1.2.3.4","hostname":"A b","nodeName":"A b"}]}]
subsets.0.ports = [{"port":0}]
subsets.0.ports = [{"port":80},{"port":81}]
subsets.0.ports = [{"port":80,"name":"A b","protocol":"Foo"}]
`,
    updates: `
subsets = [{"addresses":[{"ip":"x"}]}]
subsets = []
`,
  },
  {
    resource: "endpointslices",
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    good: {
      addressType: "IPv4",
      endpoints: [{ addresses: ["1.2.3.4"] }],
      ports: [{ port: 80, name: "p" }],
    },
    creates: `
addressType =
addressType = "Foo"
addressType = "IPv6"
addressType = "FQDN"
endpoints = [{"addresses":[]}]
endpoints = [{"addresses":["x"]}]
endpoints = [{"addresses":["127.0.0.1"]}]
endpoints = [{"addresses":["::1"]}]
endpoints = [{"addresses":["1.2.3.4"],"hostname":"A b","nodeName":"A b"}]
endpoints = [{"addresses":["1.2.3.4"],"hints":{"forZones":[{"name":"z"},{"name":"z"}]}}]
endpoints = []
addressType = "FQDN" ; endpoints = [{"addresses":["a.b"]}]
ports = [{"port":80},{"port":81}]
ports = [{"port":80,"name":"A b","protocol":"Foo","appProtocol":"A b"}]
`,
    updates: `
addressType = "IPv6" ; endpoints = []
endpoints = [{"addresses":["1.2.3.5"]}]
endpoints = [{"addresses":["x"]}]
`,
  },
  {
    resource: "configmaps",
    apiVersion: "v1",
    kind: "ConfigMap",
    good: { data: { a: "b" } },
    creates: `
data = {"a b":"c"}
data = {"..":"c",".":"d"}
data = {"a":"c"} ; binaryData = {"a":"eA=="}
metadata.name = "A"
`,
    updates: `
data = {"a":"c"}
immutable = true
data = {"a b":"c"}
`,
  },
  {
    resource: "secrets",
    apiVersion: "v1",
    kind: "Secret",
    good: { data: { a: "eA==" }, immutable: true },
    creates: `
data = {"a b":"eA=="}
type = "kubernetes.io/tls"
type = "kubernetes.io/basic-auth"
type = "kubernetes.io/ssh-auth"
type = "kubernetes.io/dockerconfigjson"
type = "kubernetes.io/service-account-token"
`,
    updates: `
data = {"a":"eQ=="}
immutable =
type = "foo"
`,
  },
  {
    resource: "serviceaccounts",
    apiVersion: "v1",
    kind: "ServiceAccount",
    good: {},
    creates: `
metadata.name = "A"
metadata.finalizers = ["x"]
`,
    updates: `
metadata.finalizers = ["x"]
`,
  },
  {
    resource: "ingresses",
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    good: {
      spec: {
        rules: [
          {
            host: "a.b",
            http: {
              paths: [
                {
                  path: "/",
                  pathType: "Prefix",
                  backend: { service: { name: "s", port: { number: 80 } } },
                },
              ],
            },
          },
        ],
      },
    },
    creates: `
spec =
spec.rules = []
spec.rules.0.host = "A b"
spec.rules.0.host = "1.2.3.4"
spec.rules.0.host = "*.a.b"
spec.rules.0.host = "*.*.b"
spec.rules.0.host = "*"
spec.rules.0.http = {"paths":[]}
spec.rules.0.http.paths.0.pathType =
spec.rules.0.http.paths.0.pathType = "Foo"
spec.rules.0.http.paths.0.path = "a"
spec.rules.0.http.paths.0.path = ""
spec.rules.0.http.paths.0.path = "/a//b"
spec.rules.0.http.paths.0.path = "/a/../b"
spec.rules.0.http.paths.0.path = "/a%2fb"
spec.rules.0.http.paths.0.path = "/a/.."
spec.rules.0.http.paths.0.pathType = "ImplementationSpecific" ; spec.rules.0.http.paths.0.path = "a"
spec.rules.0.http.paths.0.backend = {}
spec.rules.0.http.paths.0.backend = {"service":{"name":"","port":{"number":80}}}
spec.rules.0.http.paths.0.backend = {"service":{"name":"A b","port":{"number":80}}}
spec.rules.0.http.paths.0.backend = {"service":{"name":"s","port":{}}}
spec.rules.0.http.paths.0.backend = {"service":{"name":"s","port":{"number":80,"name":"x"}}}
spec.rules.0.http.paths.0.backend = {"service":{"name":"s","port":{"number":70000}}}
spec.rules.0.http.paths.0.backend = {"service":{"name":"s","port":{"name":"A b"}}}
spec.rules.0.http.paths.0.backend = {"resource":{"kind":"","name":""}}
spec.rules.0.http.paths.0.backend = {"resource":{"apiGroup":"A b","kind":"a/b","name":"x%"}}
spec.rules.0.http.paths.0.backend = {"resource":{"kind":"a","name":"b"},"service":{"name":"s","port":{"number":80}}}
spec.defaultBackend = {"service":{"name":"s","port":{"number":0}}}
spec.tls = [{"hosts":["A b","*.a"],"secretName":"A b"}]
spec.ingressClassName = "A b"
spec.ingressClassName = "a" ; metadata.annotations = {"kubernetes.io/ingress.class":"b"}
`,
    updates: `
spec.rules.0.host = "A b"
spec.rules.0.host = "c.d"
`,
  },
  {
    resource: "ingressclasses",
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    isClusterScoped: true,
    good: { spec: { controller: "a.b/c" } },
    creates: `
spec.controller = ""
spec.controller = "a"
spec.controller = "A b/c"
spec.parameters = {"kind":"","name":""}
spec.parameters = {"kind":"a","name":"b"}
spec.parameters = {"kind":"a","name":"b","scope":"Foo"}
spec.parameters = {"kind":"a","name":"b","scope":"Namespace"}
spec.parameters = {"kind":"a","name":"b","scope":"Cluster","namespace":"x"}
`,
    updates: `
spec.controller = "a.b/d"
`,
  },
  {
    resource: "servicecidrs",
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    isClusterScoped: true,
    good: { spec: { cidrs: ["10.7.0.0/24"] } },
    creates: `
spec.cidrs =
spec.cidrs = []
spec.cidrs = ["10.7.0.0/24","2001:db8::/64"]
spec.cidrs = ["10.7.0.0/24","10.8.0.0/24"]
spec.cidrs = ["2001:db8::/64","2001:db9::/64"]
spec.cidrs = ["10.7.0.0/24","2001:db8::/64","10.8.0.0/24"]
spec.cidrs = ["a"]
spec.cidrs = ["a","b"]
spec.cidrs = ["10.7.0.1/24"]
spec.cidrs = ["10.7.0.0"]
spec.cidrs = ["010.7.0.0/24"]
spec.cidrs = ["2001:DB8::/64"]
spec.cidrs = ["2001:db8:0:0::/64"]
spec.cidrs = ["::ffff:10.7.0.0/120"]
metadata.name = "A_b"
`,
    updates: `
metadata.labels = {"a":"b"}
spec.cidrs = ["10.8.0.0/24"]
spec.cidrs = ["10.7.0.0/24","2001:db8::/64"]
spec.cidrs = ["10.7.0.0/24","10.8.0.0/24"]
spec.cidrs = ["10.8.0.0/24","2001:db8::/64"]
spec.cidrs = []
spec.cidrs = ["a"]
status = {"conditions":[{"type":"Ready","status":"Foo"}]}
`,
  },
  {
    resource: "ipaddresses",
    apiVersion: "networking.k8s.io/v1",
    kind: "IPAddress",
    isClusterScoped: true,
    good: {
      metadata: { name: "10.7.0.9" },
      spec: { parentRef: { resource: "services", namespace: "t", name: "a" } },
    },
    creates: `
spec =
spec.parentRef =
spec.parentRef = {}
spec.parentRef.resource =
spec.parentRef.resource = "a/b"
spec.parentRef.name = "a/b"
spec.parentRef.name = ".."
spec.parentRef.namespace = "a/b"
spec.parentRef.namespace =
spec.parentRef.group = "A_b"
spec.parentRef.group = "a.b"
metadata.name = "a"
metadata.name = "010.7.0.9"
metadata.name = "2001:DB8::1"
metadata.name = "2001:db8::1"
`,
    updates: `
metadata.labels = {"a":"b"}
spec.parentRef.name = "b"
spec.parentRef =
spec.parentRef.group = "A_b"
`,
  },
  {
    resource: "networkpolicies",
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    good: { spec: { podSelector: {} } },
    creates: `
spec.podSelector = {"matchLabels":{"a b":"c"}}
spec.policyTypes = ["Foo"]
spec.policyTypes = ["Ingress","Egress","Ingress"]
spec.ingress = [{"from":[{}]}]
spec.ingress = [{"from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}]}]
spec.ingress = [{"from":[{"ipBlock":{"cidr":""}}]}]
spec.ingress = [{"from":[{"ipBlock":{"cidr":"x"}}]}]
spec.ingress = [{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/8"]}}]}]
spec.ingress = [{"from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}}]}]
spec.ingress = [{"from":[{"ipBlock":{"cidr":"2001:db8::/32","except":["2001:db8:1::/48","2001:db9::/48"]}}]}]
spec.ingress = [{"ports":[{"port":0}]}]
spec.ingress = [{"ports":[{"port":"A b","protocol":"Foo"}]}]
spec.ingress = [{"ports":[{"port":80,"endPort":70}]}]
spec.ingress = [{"ports":[{"port":"http","endPort":70}]}]
spec.ingress = [{"ports":[{"endPort":70}]}]
spec.egress = [{"to":[{}],"ports":[{"port":70000}]}]
`,
    updates: `
spec.policyTypes = ["Foo"]
spec.podSelector = {"matchLabels":{"a":"c"}}
`,
  },
  {
    resource: "poddisruptionbudgets",
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    good: { spec: { minAvailable: 1, selector: { matchLabels: { a: "b" } } } },
    creates: `
spec.maxUnavailable = 1
spec.minAvailable = -1
spec.minAvailable = "200%"
spec.minAvailable = "x"
spec.minAvailable = "50%"
spec.minAvailable = ; spec.maxUnavailable = "x%"
spec.selector = {"matchLabels":{"a b":"c"}}
spec.unhealthyPodEvictionPolicy = "Foo"
spec.unhealthyPodEvictionPolicy = "AlwaysAllow"
`,
    updates: `
spec.minAvailable = -1
spec.minAvailable = 2
spec.selector = {}
`,
  },
  {
    resource: "horizontalpodautoscalers",
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    good: {
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" },
        maxReplicas: 3,
        metrics: [METRIC],
      },
    },
    creates: `
spec.maxReplicas = 0
spec.maxReplicas = -1
spec.minReplicas = 5
spec.minReplicas = 0
spec.minReplicas = -1
spec.scaleTargetRef = {"kind":"","name":""}
spec.scaleTargetRef = {"kind":"a/b","name":"c%d","apiVersion":"a/b/c"}
spec.scaleTargetRef = {"kind":"Foo","name":"c","apiVersion":"v1"}
spec.metrics = [{"type":"Foo"}]
spec.metrics = [{"type":""}]
spec.metrics = [{"type":"Resource"}]
spec.metrics = [{"type":"Resource","resource":{"name":"","target":{"type":"Utilization","averageUtilization":50}}}]
spec.metrics = [{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":0}}}]
spec.metrics = [{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}}]
spec.metrics = [{"type":"Resource","resource":{"name":"cpu","target":{"type":"Foo","averageUtilization":50}}}]
spec.metrics = [{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50,"averageValue":"1"}}}]
spec.metrics = [{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"-1"}}}]
spec.metrics = [{"type":"Pods","pods":{"metric":{"name":""},"target":{"type":"AverageValue"}}}]
spec.metrics = [{"type":"Pods","pods":{"metric":{"name":"m"},"target":{"type":"AverageValue","averageValue":"1"}}}]
spec.metrics = [{"type":"Object","object":{"metric":{"name":"m"},"describedObject":{"kind":"","name":""},"target":{"type":"Value"}}}]
spec.metrics = [{"type":"External","external":{"metric":{"name":"m/x"},"target":{"type":"Value","value":"1","averageValue":"2"}}}]
spec.metrics = [{"type":"ContainerResource","containerResource":{"name":"cpu","container":"",\
"target":{"type":"Utilization","averageUtilization":50}}}]
spec.behavior = {"scaleUp":{"policies":[],"selectPolicy":"Foo","stabilizationWindowSeconds":-1}}
spec.behavior = {"scaleDown":{"policies":[{"type":"Foo","value":0,"periodSeconds":0}],"stabilizationWindowSeconds":5000}}
spec.behavior = {"scaleDown":{"policies":[{"type":"Pods","value":1,"periodSeconds":2000}]}}
`,
    updates: `
spec.maxReplicas = 0
spec.maxReplicas = 9
`,
  },
  {
    resource: "roles",
    apiVersion: RBAC,
    kind: "Role",
    good: { rules: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }] },
    creates: `
rules.0.verbs = []
rules.0.apiGroups = []
rules.0.resources = []
rules = [{"verbs":["get"],"nonResourceURLs":["/x"]}]
`,
    updates: `
rules = []
rules.0.verbs = []
`,
  },
  {
    resource: "rolebindings",
    apiVersion: RBAC,
    kind: "RoleBinding",
    good: {
      roleRef: ROLE_REF,
      subjects: [{ kind: "User", name: "u", apiGroup: "rbac.authorization.k8s.io" }],
    },
    creates: `
roleRef = {"apiGroup":"x","kind":"Foo","name":""}
roleRef.name = "a/b"
subjects = [{"kind":"Foo","name":""}]
subjects = [{"kind":"ServiceAccount","name":"A b"}]
subjects = [{"kind":"User","name":"a","apiGroup":"x"}]
`,
    updates: `
roleRef.name = "s"
subjects = []
`,
  },
  {
    resource: "persistentvolumeclaims",
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    good: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    creates: `
spec =
spec.accessModes = []
spec.accessModes = ["Foo"]
spec.accessModes = ["ReadWriteOncePod","ReadWriteOnce"]
spec.resources =
spec.resources = {"requests":{"storage":"0"}}
spec.resources = {"requests":{"storage":"-1"}}
spec.selector = {"matchLabels":{"a b":"c"}}
spec.storageClassName = "A b"
spec.storageClassName = ""
spec.volumeMode = "Foo"
spec.dataSource = {"kind":"","name":""}
spec.dataSource = {"kind":"PersistentVolumeClaim","name":"x"}
spec.dataSource = {"apiGroup":"a.b","kind":"Foo","name":"x"} ; spec.dataSourceRef = {"apiGroup":"a.b","kind":"Foo","name":"y"}
`,
    updates: `
spec.volumeName = "v"
spec.accessModes = ["ReadOnlyMany"]
spec.resources = {"requests":{"storage":"2Gi"}}
spec.storageClassName = "x"
spec.volumeMode = "Block"
metadata.labels = {"a":"b"}
`,
  },
  {
    resource: "persistentvolumes",
    apiVersion: "v1",
    kind: "PersistentVolume",
    isClusterScoped: true,
    good: {
      spec: {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        hostPath: { path: "/x" },
      },
    },
    creates: `
spec.accessModes = []
spec.accessModes = ["Foo"]
spec.capacity = {}
spec.capacity = {"storage":"0"}
spec.capacity = {"storage":"1","cpu":"1"}
spec.hostPath =
spec.hostPath.path = ""
spec.hostPath.path = "/a/../b"
spec.nfs = {"server":"a","path":"/b"}
spec.hostPath = ; spec.nfs = {"server":"","path":"b"}
spec.hostPath = ; spec.csi = {"driver":"","volumeHandle":""}
spec.hostPath = ; spec.local = {"path":"/x"}
spec.persistentVolumeReclaimPolicy = "Foo"
spec.persistentVolumeReclaimPolicy = "Recycle" ; spec.hostPath.path = "/"
spec.storageClassName = "A b"
spec.volumeMode = "Foo"
spec.nodeAffinity = {"required":{"nodeSelectorTerms":[]}}
spec.nodeAffinity = {}
`,
    updates: `
spec.hostPath.path = "/y"
spec.capacity = {"storage":"2Gi"}
spec.volumeMode = "Block"
spec.accessModes = ["ReadOnlyMany"]
spec.persistentVolumeReclaimPolicy = "Delete"
`,
  },
  {
    resource: "storageclasses",
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    isClusterScoped: true,
    good: { provisioner: "a.b/c" },
    creates: `
provisioner =
provisioner = "A b"
parameters = {"":"x"}
reclaimPolicy = "Foo"
volumeBindingMode = "Foo"
allowedTopologies = [{"matchLabelExpressions":[{"key":"a b","values":[]}]}]
allowedTopologies = [{"matchLabelExpressions":[{"key":"a","values":["x"]},{"key":"a","values":["x","x"]}]}]
`,
    updates: `
provisioner = "a.b/d"
parameters = {"x":"y"}
reclaimPolicy = "Retain"
volumeBindingMode = "WaitForFirstConsumer"
allowVolumeExpansion = true
`,
  },
  {
    resource: "priorityclasses",
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    isClusterScoped: true,
    good: { value: 5 },
    creates: `
metadata.name = "system-foo"
value = 1000000001
preemptionPolicy = "Foo"
`,
    updates: `
value = 6
preemptionPolicy = "Never"
description = "x"
`,
  },
  {
    resource: "resourcequotas",
    apiVersion: "v1",
    kind: "ResourceQuota",
    good: { spec: { hard: { pods: "5" } } },
    creates: `
spec.hard = {"foo":"1"}
spec.hard = {"pods":"-1"}
spec.hard = {"pods":"1.5"}
spec.hard = {"requests.cpu":"1","count/deployments.apps":"3"}
spec.hard = {"a b":"1"}
spec.scopes = ["Foo"]
spec.scopes = ["BestEffort","NotBestEffort"]
spec.scopes = ["Terminating"]
spec.scopes = ["BestEffort"] ; spec.hard = {"cpu":"1"}
spec.scopeSelector = {"matchExpressions":[{"scopeName":"Foo","operator":"Foo"}]}
spec.scopeSelector = {"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["a"]}]}
spec.scopeSelector = {"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]}
spec.scopeSelector = {"matchExpressions":[{"scopeName":"BestEffort","operator":"In","values":["a"]}]}
`,
    updates: `
spec.hard = {"pods":"6"}
spec.hard = {"foo":"6"}
spec.scopes = ["Terminating"]
`,
  },
  {
    resource: "limitranges",
    apiVersion: "v1",
    kind: "LimitRange",
    good: { spec: { limits: [{ type: "Container", max: { cpu: "1" } }] } },
    creates: `
spec.limits.0.type = "Foo"
spec.limits.0.min = {"cpu":"2"}
spec.limits.0.default = {"cpu":"2"}
spec.limits.0.defaultRequest = {"cpu":"2"}
spec.limits.0 = {"type":"Container","default":{"cpu":"1"},"defaultRequest":{"cpu":"2"}}
spec.limits.0 = {"type":"Pod","default":{"cpu":"1"}}
spec.limits.0.maxLimitRequestRatio = {"cpu":"0.5"}
spec.limits.1 = {"type":"Container","max":{"cpu":"1"}}
spec.limits.0 = {"type":"PersistentVolumeClaim"}
spec.limits.0 = {"type":"PersistentVolumeClaim","max":{"storage":"1"}}
spec.limits.0 = {"type":"Container","max":{"foo":"1"}}
`,
    updates: `
spec.limits.0.max = {"cpu":"3"}
spec.limits.0.type = "Foo"
`,
  },
  {
    resource: "namespaces",
    apiVersion: "v1",
    kind: "Namespace",
    isClusterScoped: true,
    good: {},
    creates: `
metadata.name = "a.b"
metadata.name = "A"
spec = {"finalizers":["x"]}
`,
    updates: `
metadata.labels = {"a b":"c"}
`,
  },
  {
    resource: "leases",
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    good: { spec: { holderIdentity: "a", leaseDurationSeconds: 5 } },
    creates: `
spec.leaseDurationSeconds = 0
spec.leaseTransitions = -1
spec.holderIdentity = ""
spec =
`,
    updates: `
spec.leaseDurationSeconds = 0
spec.holderIdentity = "b"
`,
  },
  {
    resource: "nodes",
    apiVersion: "v1",
    kind: "Node",
    isClusterScoped: true,
    good: {},
    creates: `
metadata.name = "A b"
spec = {"taints":[{"key":"a b","effect":"Foo"}]}
spec = {"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}
spec = {"taints":[{"key":"a","effect":""}]}
spec = {"podCIDRs":["x"]}
spec = {"podCIDR":"10.0.0.0/24"}
`,
    updates: `
spec = {"podCIDR":"10.0.0.0/24"}
spec = {"providerID":"x"}
spec = {"taints":[{"key":"a","effect":"NoSchedule"}]}
spec = {"unschedulable":true}
`,
  },
];

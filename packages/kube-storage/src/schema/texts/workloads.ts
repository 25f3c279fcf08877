/** Descriptions of kinds that clusters with nodes run. */
export const workloadTexts = `
core.Pod: Containers that run together on one node.
core.PodSpec: What is wanted of a pod.
  containers: The containers. There is at least one.
  initContainers: Containers that run one after another before the others start.
  volumes: Volumes that containers may mount.
  nodeName: The node on which the pod runs.
  nodeSelector: Labels that the node must have.
  restartPolicy: Always, OnFailure or Never.
  serviceAccountName: The identity of the pod's programs.
core.PodStatus: What was last observed of a pod.
  phase: Pending, Running, Succeeded, Failed or Unknown.
  conditions: Aspects of the pod's state, such as Ready.
  podIP: The pod's address.
core.PodTemplateSpec: From which a controller makes pods.
core.Container: A program in an image.
  name: The container's name, unique in the pod.
  image: The image.
  command: The program and its first arguments; absent for the image's own.
  args: Arguments.
  env: Environment variables.
  ports: Ports that the program listens on.
  resources: What the program needs at least and may use at most.
  volumeMounts: Where volumes are mounted.
core.EnvVar: An environment variable.
core.Volume: A directory that containers share.
core.Service: A name and an address for a set of pods.
core.ServiceSpec: What is wanted of a service.
  ports: The ports of the service.
  selector: Labels of the pods.
  type: ClusterIP, NodePort, LoadBalancer or ExternalName.
  clusterIP: The address; None for a service without one.
core.Endpoints: The addresses of a service's pods. EndpointSlices have replaced it.
core.Node: A machine that runs pods.
core.PersistentVolume: Storage in the cluster.
core.PersistentVolumeClaim: A request for storage.
core.ReplicationController: Keeps a number of pods running. Deployments have replaced it.
core.LimitRange: Limits and defaults for what objects in a namespace may ask for.
core.ResourceQuota: Limits for the sum of what a namespace's objects ask for.
core.PodTemplate: A template of pods.
apps.Deployment: Keeps a number of equal pods running and replaces them step by step.
apps.DeploymentSpec: What is wanted of a deployment.
  replicas: The wanted number of pods; 1 by default.
  selector: Labels of the pods. It cannot be changed.
  template: From which the pods are made.
  strategy: How pods are replaced.
apps.ReplicaSet: Keeps a number of equal pods running.
apps.StatefulSet: Keeps pods with names and storage of their own running.
apps.DaemonSet: Keeps a pod running on each node.
apps.ControllerRevision: A former state of a controller's object.
batch.Job: Runs pods until enough of them have succeeded.
batch.CronJob: Creates jobs by a schedule.
networking.Ingress: Rules by which HTTP requests reach services.
networking.IngressClass: A controller for ingresses.
networking.NetworkPolicy: Which traffic pods may send and receive.
discovery.EndpointSlice: A part of the addresses of a service.
policy.PodDisruptionBudget: How many pods may be taken down at the same time.
scheduling.PriorityClass: A priority of pods, by name.
storage.StorageClass: A class of storage.
`;

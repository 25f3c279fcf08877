/** The fields of Kubernetes objects that the chart's pods need. */

/** A container of a pod: its command, environment, volumes and probe. */
export interface Container {
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
}

/** A pod as a template describes it. */
export interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
    readonly emptyDir?: object;
  }[];
}

/** An object as the chart renders it; `spec` is that of a StatefulSet or a job. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas: number;
    readonly serviceName: string;
    readonly template: { readonly spec: PodSpec };
  };
}

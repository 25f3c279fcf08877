{{/* Names, labels and addresses that several templates share. */}}

{{- define "quorate.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "quorate.selector" -}}
app.kubernetes.io/name: quorate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quorate.labels" -}}
{{ include "quorate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "quorate.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end -}}

{{- define "quorate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "quorate.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "quorate.scheme" -}}
{{- ternary "https" "http" .Values.tls.enabled -}}
{{- end -}}

{{/* The part of a member's address behind its name. */}}
{{- define "quorate.domain" -}}
{{ printf "%s.%s.svc.%s" (include "quorate.name" .) .Release.Namespace .Values.cluster.domain }}
{{- end -}}

{{- define "quorate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "quorate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* How quoratectl in a pod of this release reaches the cluster. */}}
{{- define "quorate.clientEnv" -}}
- name: ETCDCTL_ENDPOINTS
  value: {{ printf "%s://%s-client.%s.svc.%s:2379" (include "quorate.scheme" .) (include "quorate.name" .) .Release.Namespace .Values.cluster.domain | quote }}
{{- if .Values.tls.enabled }}
- { name: ETCDCTL_CACERT, value: /etc/quorate/client/ca.crt }
{{- if .Values.tls.clientCertAuth }}
- { name: ETCDCTL_CERT, value: /etc/quorate/client/tls.crt }
- { name: ETCDCTL_KEY, value: /etc/quorate/client/tls.key }
{{- end }}
{{- end }}
{{- end -}}

{{/* The secret behind it: without client certificates the server's authority is enough. */}}
{{- define "quorate.clientSecret" -}}
{{- ternary .Values.tls.clientSecret .Values.tls.serverSecret .Values.tls.clientCertAuth -}}
{{- end -}}

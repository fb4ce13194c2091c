{{/* Everything a ring needs in its namespace, as separate documents. */}}
{{- define "grapevine-sidecar.objects" -}}
{{- $documents := list (include "grapevine-sidecar.config" .) (include "grapevine-sidecar.service" .) -}}
{{- if .values.rules.create -}}
{{- $documents = append $documents (include "grapevine-sidecar.rules" .) -}}
{{- end -}}
{{- if .values.keys.create -}}
{{- $documents = append $documents (include "grapevine-sidecar.keys" .) -}}
{{- end -}}
{{- if and .values.rbac.create (include "grapevine-sidecar.needsToken" .) -}}
{{- $documents = append $documents (include "grapevine-sidecar.role" .) -}}
{{- end -}}
{{- if .values.networkPolicy.enabled -}}
{{- $documents = append $documents (include "grapevine-sidecar.networkPolicy" .) -}}
{{- end -}}
{{ join "\n---\n" $documents }}
{{- end }}

{{- define "grapevine-sidecar.sidecarYaml" -}}
{{- $values := .values -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $six := eq $values.gossip.ipFamily "IPv6" -}}
{{- $gossip := dict
  "bind" (ternary "[::]:7946" "0.0.0.0:7946" $six)
  "advertise" (ternary "[${POD_IP}]:7946" "${POD_IP}:7946" $six)
  "label" ($values.gossip.label | default (printf "%s/%s" $namespace $values.ring)) -}}
{{- if $values.gossip.encryption -}}
{{- $_ := set $gossip "encryptionKeys" (list "file:/etc/grapevine/keys/gossip") -}}
{{- end -}}
{{- with $values.gossip.allow -}}
{{- $_ := set $gossip "allow" . -}}
{{- end -}}
{{- $counters := dict "keys" (int $values.counters.keys) "secret" "file:/etc/grapevine/keys/counters" -}}
{{- if $values.counters.checkpoint -}}
{{- $_ := set $counters "checkpoint" "/var/lib/grapevine/totals" -}}
{{- end -}}
{{- $service := include "grapevine-sidecar.gossipServiceName" . -}}
{{- $discovery := dict "dns" (printf "%s.%s.svc" $service $namespace) -}}
{{- if eq $values.discovery "kubernetes" -}}
{{- $discovery = dict "kubernetes" (dict "service" $service "namespace" $namespace) -}}
{{- end -}}
{{- $config := dict
  "version" 1
  "node" (dict "name" "${POD_NAME}")
  "gossip" $gossip
  "counters" $counters
  "discovery" $discovery -}}
{{- toYaml (mustMergeOverwrite $config (deepCopy $values.config)) -}}
{{- end }}

{{/* The sidecar file. Changing it needs a restart of the pods. */}}
{{- define "grapevine-sidecar.config" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "grapevine-sidecar.configMapName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
data:
  sidecar.yaml: |
    {{- include "grapevine-sidecar.sidecarYaml" . | nindent 4 }}
{{- end }}

{{/* The rules, read again by running sidecars when they change. */}}
{{- define "grapevine-sidecar.rules" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "grapevine-sidecar.rulesConfigMapName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
data:
  rules.yaml: |
    {{- toYaml .values.rules.content | nindent 4 }}
{{- end }}

{{/* Gossip key and counters secret: made once, and kept by upgrades and by uninstalling. */}}
{{- define "grapevine-sidecar.keys" -}}
{{- $name := include "grapevine-sidecar.keysSecretName" . -}}
{{- $known := (lookup "v1" "Secret" .root.Release.Namespace $name).data | default dict -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
type: Opaque
data:
  gossip: {{ $known.gossip | default (randBytes 32 | b64enc) }}
  counters: {{ $known.counters | default (randBytes 32 | b64enc) }}
{{- end }}

{{/*
Headless, and with addresses that are not ready yet: sidecars find each other before they are ready.
appProtocol keeps meshes from reading gossip as HTTP.
*/}}
{{- define "grapevine-sidecar.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "grapevine-sidecar.gossipServiceName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
spec:
  type: ClusterIP
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "grapevine-sidecar.podLabels" . | nindent 4 }}
  ports:
    - name: gossip
      port: 7946
      targetPort: rl-gossip
      protocol: TCP
      appProtocol: tcp
    - name: gossip-udp
      port: 7946
      targetPort: rl-gossip-udp
      protocol: UDP
{{- end }}

{{/* What the sidecars ask of the API, and nothing more. */}}
{{- define "grapevine-sidecar.role" -}}
{{- $namespace := .root.Release.Namespace -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .values.ring }}-discovery
  namespace: {{ $namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
rules:
  {{- if eq .values.discovery "kubernetes" }}
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [get, list, watch]
  {{- end }}
  {{- if .values.sidecar.watchRules }}
  - apiGroups: [""]
    resources: [configmaps]
    resourceNames: [{{ include "grapevine-sidecar.rulesConfigMapName" . }}]
    verbs: [get, list, watch]
  {{- end }}
  {{- with .values.rbac.extraRules }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .values.ring }}-discovery
  namespace: {{ $namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .values.ring }}-discovery
subjects:
  {{- range .values.rbac.serviceAccounts }}
  - kind: ServiceAccount
    name: {{ . }}
    namespace: {{ $namespace }}
  {{- else }}
  - apiGroup: rbac.authorization.k8s.io
    kind: Group
    name: system:serviceaccounts:{{ $namespace }}
  {{- end }}
{{- end }}

{{- define "grapevine-sidecar.networkPolicy" -}}
{{- $policy := .values.networkPolicy -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .values.ring }}-ring
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "grapevine-sidecar.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "grapevine-sidecar.podLabels" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels:
              {{- include "grapevine-sidecar.podLabels" . | nindent 14 }}
      ports:
        - port: 7946
          protocol: TCP
        - port: 7946
          protocol: UDP
    - ports:
        - port: 7980
          protocol: TCP
      {{- with $policy.proxyFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    - ports:
        - port: 7990
          protocol: TCP
      {{- with $policy.telemetryFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with $policy.extraIngress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

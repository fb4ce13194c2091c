{{/*
Templates take (dict "root" $ "values" VALUES), VALUES being shaped like this chart's values.yaml.
Names, ports and paths are those of src/injector/names.ts; golden files hold both equal.
*/}}

{{- define "grapevine-sidecar.version" -}}0.1.0{{- end }}

{{- define "grapevine-sidecar.image" -}}
{{- $image := .values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (include "grapevine-sidecar.version" .) }}
{{- end -}}
{{- end }}

{{- define "grapevine-sidecar.configMapName" -}}
{{ .values.sidecar.configMap | default (printf "%s-config" .values.ring) }}
{{- end }}

{{- define "grapevine-sidecar.rulesConfigMapName" -}}
{{ .values.sidecar.rulesConfigMap | default (printf "%s-rules" .values.ring) }}
{{- end }}

{{- define "grapevine-sidecar.keysSecretName" -}}
{{ .values.sidecar.keysSecret | default (printf "%s-keys" .values.ring) }}
{{- end }}

{{- define "grapevine-sidecar.gossipServiceName" -}}
{{ .values.ring }}-gossip
{{- end }}

{{- define "grapevine-sidecar.labels" -}}
app.kubernetes.io/name: grapevine
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ include "grapevine-sidecar.version" . | quote }}
app.kubernetes.io/part-of: grapevine
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
grapevine.dev/ring: {{ .values.ring }}
{{- with .values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels for the pod template: the gossip Service and the NetworkPolicy select by them. */}}
{{- define "grapevine-sidecar.podLabels" -}}
grapevine.dev/ring: {{ .values.ring }}
{{- end }}

{{/* Annotations for the pod template. */}}
{{- define "grapevine-sidecar.podAnnotations" -}}
{{- $sidecar := .values.sidecar -}}
{{- $status := dict "mode" $sidecar.mode "nativeSidecar" $sidecar.nativeSidecar "version" (include "grapevine-sidecar.version" .) -}}
{{- if eq $sidecar.mode "proxy" -}}
{{- $_ := set $status "appPort" (include "grapevine-sidecar.appPortNumber" . | int) -}}
{{- $_ := set $status "port" (include "grapevine-sidecar.proxyPortName" .) -}}
{{- end -}}
{{- if $sidecar.prometheusAnnotations }}
prometheus.io/scrape: "true"
prometheus.io/port: "7990"
prometheus.io/path: /metrics
{{- end }}
grapevine.dev/status: {{ $status | toJson | quote }}
{{- end }}

{{- define "grapevine-sidecar.proxyPortName" -}}
{{ .values.sidecar.appPort | default "rl-proxy" }}
{{- end }}

{{- define "grapevine-sidecar.appPortNumber" -}}
{{- $number := .values.sidecar.appPortNumber | int -}}
{{- if not $number -}}
{{- fail "grapevine-sidecar: sidecar.appPortNumber says where the application listens, and is missing" -}}
{{- end -}}
{{ $number }}
{{- end }}

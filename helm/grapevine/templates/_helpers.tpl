{{- define "grapevine.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "grapevine.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "grapevine.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "grapevine.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "grapevine.injectorName" -}}
{{ include "grapevine.fullname" . }}-injector
{{- end }}

{{- define "grapevine.injectorSelector" -}}
app.kubernetes.io/name: {{ include "grapevine.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: injector
{{- end }}

{{- define "grapevine.labels" -}}
app.kubernetes.io/name: {{ include "grapevine.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: grapevine
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "grapevine.injectorLabels" -}}
{{ include "grapevine.labels" . }}
app.kubernetes.io/component: injector
{{- end }}

{{- define "grapevine.certificateSecret" -}}
{{ .Values.injector.certificates.secretName | default (printf "%s-tls" (include "grapevine.injectorName" .)) }}
{{- end }}

{{- define "grapevine.serviceAccount" -}}
{{ .Values.injector.serviceAccountName | default (include "grapevine.injectorName" .) }}
{{- end }}

{{/* Whether the injector talks to the API at all. */}}
{{- define "grapevine.injectorUsesApi" -}}
{{- if or .Values.injector.reportServices (eq .Values.injector.certificates.source "self-managed") -}}yes{{- end -}}
{{- end }}

{{- define "grapevine.restrictedContainer" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsGroup: 65532
runAsNonRoot: true
runAsUser: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

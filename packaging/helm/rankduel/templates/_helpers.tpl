{{/* The name of everything: the release's, which has the chart's in it or gets it appended. */}}
{{- define "rankduel.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels by which the Service and the budget find the pods. They can never change. */}}
{{- define "rankduel.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rankduel.labels" -}}
{{ include "rankduel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "rankduel.secret" -}}
{{- .Values.existingSecret | default (include "rankduel.name" .) -}}
{{- end -}}

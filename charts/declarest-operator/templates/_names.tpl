{{/* The prefix of all names. */}}
{{- define "declarest.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "declarest.selector" -}}
app.kubernetes.io/name: {{ include "declarest.fullname" . }}
{{- end -}}

{{- define "declarest.labels" -}}
{{ include "declarest.selector" . }}
app.kubernetes.io/part-of: declarest
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "declarest.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "declarest.fullname" .) -}}
{{- end -}}

{{- define "declarest.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* The Secret with the certificate of the admission webhooks. */}}
{{- define "declarest.certificate" -}}
{{- include "declarest.fullname" . }}-webhook-tls
{{- end -}}

{{- define "declarest.claim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-state" (include "declarest.fullname" .)) -}}
{{- end -}}

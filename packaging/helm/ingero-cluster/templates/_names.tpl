{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "ingero-cluster.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ingero-cluster.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "ingero-cluster.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ingero-cluster.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ingero-cluster.selector" -}}
app.kubernetes.io/name: {{ include "ingero-cluster.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "ingero-cluster.labels" -}}
{{- $ours := dict
  "app.kubernetes.io/name" (include "ingero-cluster.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $ours .Values.commonLabels) -}}
{{- end -}}

{{- define "ingero-cluster.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "ingero-cluster.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "ingero-cluster.image" -}}
{{- $name := required "image.repository is needed: the name under which your registry has the image that `make image` made; there is no public one" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if eq (lower $tag) "latest" -}}
{{- fail "image.tag: latest is refused, because nobody could say which version runs: name a version, or leave it empty" -}}
{{- end -}}
{{- printf "%s:%s" $name $tag -}}
{{- end -}}
{{- end -}}

{{- define "ingero-cluster.apiPort" -}}
{{- ternary 8081 8080 (eq .Values.mode "echo") -}}
{{- end -}}

{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "ingero.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ingero.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "ingero.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ingero.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ingero.selector" -}}
app.kubernetes.io/name: {{ include "ingero.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "ingero.labels" -}}
{{- $ours := dict
  "app.kubernetes.io/name" (include "ingero.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) -}}
{{- toYaml (merge $ours .Values.commonLabels) -}}
{{- end -}}

{{- define "ingero.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "ingero.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "ingero.image" -}}
{{- $name := required "image.repository is needed: the name under which your registry has the image that `make image` made; there is no public one" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if eq (lower $tag) "latest" -}}
{{- fail "image.tag: latest is refused, because nodes would run different versions: name a version, or leave it empty" -}}
{{- end -}}
{{- printf "%s:%s" $name $tag -}}
{{- end -}}
{{- end -}}

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
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if eq (lower $tag) "latest" -}}
{{- fail "image.tag: latest is refused, because nodes would run different versions: name a version, or leave it empty" -}}
{{- end -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{/* What would only be noticed when a pod does not start is said here. */}}
{{- define "ingero.check" -}}
{{- if .Values.fleetPush.endpoint -}}
{{- $_ := required "fleetPush.clusterId is needed with fleetPush.endpoint: the name under which the cluster service knows these nodes" .Values.fleetPush.clusterId -}}
{{- if and (hasPrefix "http://" .Values.fleetPush.endpoint) (not .Values.fleetPush.insecure) -}}
{{- fail "fleetPush.endpoint is http://, so that everybody on the way could read the token: use https://, or set fleetPush.insecure=true" -}}
{{- end -}}
{{- else if or .Values.fleetPush.clusterId .Values.fleetPush.token.secretName -}}
{{- fail "fleetPush.endpoint is needed: without it nothing is pushed, and the other values of fleetPush have no effect" -}}
{{- end -}}
{{- if .Values.dashboard.enabled -}}
{{- if not (or .Values.dashboard.token.secretName .Values.dashboard.clientCa.secretName) -}}
{{- fail "dashboard.token.secretName is needed with dashboard.enabled: a Secret with a token, because every pod could read the recording (or dashboard.clientCa.secretName)" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.dashboard.clientCa.secretName (not .Values.dashboard.tls.secretName) -}}
{{- fail "dashboard.tls.secretName is needed with dashboard.clientCa: clients with certificates want to know the server's" -}}
{{- end -}}
{{- if and (not .Values.metrics.enabled) (or .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled) -}}
{{- fail "metrics.enabled is needed for a ServiceMonitor or a PodMonitor" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.service.enabled) -}}
{{- fail "metrics.service.enabled is needed for a ServiceMonitor: it chooses a Service; a PodMonitor does not" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics.serviceMonitor and metrics.podMonitor are both enabled: every node would be scraped twice" -}}
{{- end -}}
{{- if and .Values.dashboard.enabled .Values.metrics.enabled (eq (int .Values.dashboard.port) (int .Values.metrics.port)) -}}
{{- fail (printf "dashboard.port and metrics.port are both %d: one pod has both" (int .Values.metrics.port)) -}}
{{- end -}}
{{- end -}}

{{- define "ingero.node" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end -}}

{{/* The files of these two belong to root, whose they are without any capability. */}}
{{- define "ingero.reader.security" -}}
runAsUser: 0
runAsGroup: 0
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "ingero.trace.security" -}}
runAsUser: 0
runAsGroup: 0
readOnlyRootFilesystem: true
{{- if eq .Values.security.privileges "privileged" }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
  add:
    - BPF                # loads the programs
    - PERFMON            # puts them in place
    - SYS_PTRACE         # looks into processes: maps, memory, root
    - DAC_READ_SEARCH    # opens libraries and environments of other users, to read
    - CHECKPOINT_RESTORE # opens mapped files that were deleted or lie in other containers
    - KILL               # ends its helper processes, which are other users'
    - SETUID             # makes them nobody's
    - SETGID             # likewise
    - SETPCAP            # takes what is left from them
    {{- if eq .Values.security.privileges "sys-admin" }}
    - SYS_ADMIN          # uprobes of kernels before 6.6
    {{- end }}
seccompProfile:
  type: {{ .Values.security.seccomp | quote }}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
appArmorProfile:
  type: {{ .Values.security.appArmor | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A volume of one key of a Secret: name, secret, key. */}}
{{- define "ingero.secretVolume" -}}
- name: {{ .name | quote }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0400
    {{- with .key }}
    items:
      - key: {{ . | quote }}
        path: {{ $.path | quote }}
    {{- end }}
{{- end -}}

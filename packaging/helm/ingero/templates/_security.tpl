{{/* SPDX-License-Identifier: Apache-2.0 */}}

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

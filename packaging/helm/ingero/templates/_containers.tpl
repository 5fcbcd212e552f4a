{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* The containers beside the tracer, and the Secrets that all of them use. In flags that hold free text "$(" is
doubled: kubelet would put a variable there. */}}

{{- define "ingero.fleetPush" -}}
{{- $p := .Values.fleetPush -}}
- name: fleet-push
  image: {{ include "ingero.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
  command: [ingero]
  args:
    - fleet-push
    - --node-id=$(NODE_NAME)
    - --db=/var/lib/ingero/ingero.db
    - --baseline=/var/lib/ingero/health-baseline.json
    - {{ printf "--endpoint=%s" $p.endpoint | replace "$(" "$$(" | quote }}
    - {{ printf "--cluster-id=%s" $p.clusterId | replace "$(" "$$(" | quote }}
    - {{ printf "--push-interval=%s" $p.pushInterval | quote }}
    - {{ printf "--timeout=%s" $p.timeout | quote }}
    {{- with $p.provider }}
    - {{ printf "--provider=%s" . | quote }}
    {{- end }}
    {{- if $p.insecure }}
    - --insecure
    {{- end }}
    {{- if $p.token.secretName }}
    - --token-file=/etc/ingero-secrets/fleet-token/token
    {{- end }}
    {{- if $p.ca.secretName }}
    - --ca=/etc/ingero-secrets/fleet-ca/ca.crt
    {{- end }}
    {{- if $p.clientCertificate.secretName }}
    - --cert=/etc/ingero-secrets/fleet-client/tls.crt
    - --key=/etc/ingero-secrets/fleet-client/tls.key
    {{- end }}
    {{- if .Values.config }}
    - --config=/etc/ingero/ingero.yaml
    {{- end }}
    {{- range $p.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  env:
    {{- include "ingero.node" . | nindent 4 }}
  securityContext:
    {{- include "ingero.reader.security" . | nindent 4 }}
  resources:
    {{- toYaml $p.resources | nindent 4 }}
  volumeMounts:
    - name: state
      mountPath: /var/lib/ingero
    - name: tmp
      mountPath: /tmp
    {{- if .Values.config }}
    - name: config
      mountPath: /etc/ingero
      readOnly: true
    {{- end }}
    {{- if $p.token.secretName }}
    - name: fleet-token
      mountPath: /etc/ingero-secrets/fleet-token
      readOnly: true
    {{- end }}
    {{- if $p.ca.secretName }}
    - name: fleet-ca
      mountPath: /etc/ingero-secrets/fleet-ca
      readOnly: true
    {{- end }}
    {{- if $p.clientCertificate.secretName }}
    - name: fleet-client
      mountPath: /etc/ingero-secrets/fleet-client
      readOnly: true
    {{- end }}
{{- end -}}

{{- define "ingero.dashboard" -}}
{{- $d := .Values.dashboard -}}
- name: dashboard
  image: {{ include "ingero.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
  command: [ingero]
  args:
    - dashboard
    - --db=/var/lib/ingero/ingero.db
    - {{ printf "--addr=:%d" (int $d.port) | quote }}
    {{- if $d.token.secretName }}
    - --token-file=/etc/ingero-secrets/dashboard-token/token
    {{- end }}
    {{- if $d.tls.secretName }}
    - --tls-cert=/etc/ingero-secrets/dashboard-tls/tls.crt
    - --tls-key=/etc/ingero-secrets/dashboard-tls/tls.key
    {{- end }}
    {{- if $d.clientCa.secretName }}
    - --client-ca=/etc/ingero-secrets/dashboard-ca/ca.crt
    {{- end }}
    {{- range $d.allowHosts }}
    - {{ printf "--allow-host=%s" . | quote }}
    {{- end }}
    {{- if .Values.config }}
    - --config=/etc/ingero/ingero.yaml
    {{- end }}
  env:
    # Where it keeps the certificate that it makes.
    - name: HOME
      value: /var/lib/ingero
    {{- include "ingero.node" . | nindent 4 }}
  securityContext:
    {{- include "ingero.reader.security" . | nindent 4 }}
  resources:
    {{- toYaml $d.resources | nindent 4 }}
  ports:
    - name: dashboard
      containerPort: {{ int $d.port }}
      protocol: TCP
  {{- range $probe := list "livenessProbe" "readinessProbe" }}
  {{ $probe }}:
    {{- if $d.clientCa.secretName }}
    tcpSocket: # kubelet has no client certificate
      port: dashboard
    {{- else }}
    httpGet:
      path: /healthz
      port: dashboard
      scheme: HTTPS
    {{- end }}
    initialDelaySeconds: 2
    periodSeconds: 15
    timeoutSeconds: 6
    failureThreshold: 4
  {{- end }}
  volumeMounts:
    - name: state
      mountPath: /var/lib/ingero
    - name: tmp
      mountPath: /tmp
    {{- if .Values.config }}
    - name: config
      mountPath: /etc/ingero
      readOnly: true
    {{- end }}
    {{- if $d.token.secretName }}
    - name: dashboard-token
      mountPath: /etc/ingero-secrets/dashboard-token
      readOnly: true
    {{- end }}
    {{- if $d.tls.secretName }}
    - name: dashboard-tls
      mountPath: /etc/ingero-secrets/dashboard-tls
      readOnly: true
    {{- end }}
    {{- if $d.clientCa.secretName }}
    - name: dashboard-ca
      mountPath: /etc/ingero-secrets/dashboard-ca
      readOnly: true
    {{- end }}
{{- end -}}

{{- define "ingero.secrets" -}}
{{- $v := .Values -}}
{{- $list := list -}}
{{- if and $v.metrics.enabled $v.metrics.token.secretName -}}
{{- $list = append $list (dict "name" "metrics-token" "secret" $v.metrics.token.secretName "key" $v.metrics.token.key "path" "token") -}}
{{- end -}}
{{- if $v.fleetPush.endpoint -}}
{{- if $v.fleetPush.token.secretName -}}
{{- $list = append $list (dict "name" "fleet-token" "secret" $v.fleetPush.token.secretName "key" $v.fleetPush.token.key "path" "token") -}}
{{- end -}}
{{- if $v.fleetPush.ca.secretName -}}
{{- $list = append $list (dict "name" "fleet-ca" "secret" $v.fleetPush.ca.secretName "key" $v.fleetPush.ca.key "path" "ca.crt") -}}
{{- end -}}
{{- if $v.fleetPush.clientCertificate.secretName -}}
{{- $list = append $list (dict "name" "fleet-client" "secret" $v.fleetPush.clientCertificate.secretName "key" "") -}}
{{- end -}}
{{- end -}}
{{- if $v.dashboard.enabled -}}
{{- if $v.dashboard.token.secretName -}}
{{- $list = append $list (dict "name" "dashboard-token" "secret" $v.dashboard.token.secretName "key" $v.dashboard.token.key "path" "token") -}}
{{- end -}}
{{- if $v.dashboard.tls.secretName -}}
{{- $list = append $list (dict "name" "dashboard-tls" "secret" $v.dashboard.tls.secretName "key" "") -}}
{{- end -}}
{{- if $v.dashboard.clientCa.secretName -}}
{{- $list = append $list (dict "name" "dashboard-ca" "secret" $v.dashboard.clientCa.secretName "key" $v.dashboard.clientCa.key "path" "ca.crt") -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "list" $list) -}}
{{- end -}}

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
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if eq (lower $tag) "latest" -}}
{{- fail "image.tag: latest is refused, because nobody could say which version runs: name a version, or leave it empty" -}}
{{- end -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}
{{- end -}}

{{- define "ingero-cluster.apiPort" -}}
{{- ternary 8081 8080 (eq .Values.mode "echo") -}}
{{- end -}}

{{/* What would only be noticed when the pod does not start is said here. */}}
{{- define "ingero-cluster.check" -}}
{{- $v := .Values -}}
{{- include "ingero-cluster.checkEncrypted" . -}}
{{- $_ := required "tls.secretName is needed: a Secret of type kubernetes.io/tls with the certificate of the service (kubectl create secret tls, or `ingero cert`); tokens are not sent in the open" $v.tls.secretName -}}
{{- if and $v.auth.aclSecret.secretName $v.auth.tokenSecret.secretName -}}
{{- fail "auth.aclSecret and auth.tokenSecret are both given: name one of them" -}}
{{- end -}}
{{- if and (eq $v.mode "fleet") $v.auth.aclSecret.secretName -}}
{{- fail "auth.aclSecret is not for mode fleet, which knows only tokens: name auth.tokenSecret.secretName" -}}
{{- end -}}
{{- if not (or $v.auth.aclSecret.secretName $v.auth.tokenSecret.secretName) -}}
{{- fail "auth.aclSecret.secretName or auth.tokenSecret.secretName is needed: a Secret with the tokens of agents and readers" -}}
{{- end -}}
{{- if $v.serviceMonitor.enabled -}}
{{- $_ := required "serviceMonitor.token.secretName is needed with serviceMonitor.enabled: /metrics wants a token for all clusters" $v.serviceMonitor.token.secretName -}}
{{- end -}}
{{- if and (eq $v.echo.engine "clickhouse") (ne $v.mode "fleet") -}}
{{- if not $v.echo.clickhouse.urls -}}
{{- fail "echo.clickhouse.urls is needed with echo.engine=clickhouse: http(s)://host:8123 of each shard" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.egress) -}}
{{- fail "networkPolicy.egress is empty, so that ClickHouse cannot be reached: add a rule for it" -}}
{{- end -}}
{{- end -}}
{{- if and $v.fleet.alertsSecret.secretName $v.networkPolicy.enabled (not $v.networkPolicy.egress) -}}
{{- fail "networkPolicy.egress is empty, so that no receiver of alerts can be reached: add a rule for them" -}}
{{- end -}}
{{- if and $v.echo.libraryImage (semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "echo.libraryImage needs Kubernetes 1.33 or newer, which mounts images as volumes; this is %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* What is kept names jobs, users and programs of a whole cluster, so it is kept encrypted or not at all. Helm sees
the class when it talks to a cluster; `helm template` sees nothing, and takes the word of storage.encrypted. */}}
{{- define "ingero-cluster.checkEncrypted" -}}
{{- $s := .Values.storage -}}
{{- if $s.existingClaim -}}
{{- if not $s.encrypted -}}
{{- fail (printf "storage.existingClaim %q is not declared encrypted: if its volume is, set storage.encrypted=true" $s.existingClaim) -}}
{{- end -}}
{{- else -}}
{{- $name := required "storage.className is needed: a StorageClass that encrypts its volumes; the cluster's default class is not taken, because nobody would have said that it does" $s.className -}}
{{- $class := lookup "storage.k8s.io/v1" "StorageClass" "" $name -}}
{{- if $class -}}
{{- $parameters := dig "parameters" (dict) $class -}}
{{- $said := dig "encrypted" "" $parameters | toString | lower -}}
{{- $labelled := eq (dig "metadata" "labels" "ingero.io/encrypted" "" $class | toString) "true" -}}
{{- $always := has (dig "provisioner" "" $class) (list "pd.csi.storage.gke.io" "disk.csi.azure.com") -}}
{{- if eq $said "false" -}}
{{- fail (printf "StorageClass %q does not encrypt: its parameter `encrypted` is \"false\"; name one that does" $name) -}}
{{- else if not (or (eq $said "true") $labelled $always $s.encrypted) -}}
{{- fail (printf "StorageClass %q is not known to encrypt: its parameters do not say so. Name one that does, or, if you know that it does, set storage.encrypted=true or label the class ingero.io/encrypted=true" $name) -}}
{{- end -}}
{{- else if dig "items" (list) (lookup "storage.k8s.io/v1" "StorageClass" "" "") -}}
{{- fail (printf "there is no StorageClass %q in this cluster: kubectl get storageclass" $name) -}}
{{- else if not $s.encrypted -}}
{{- fail (printf "StorageClass %q is not declared encrypted, and there is no cluster here to look at: if it encrypts its volumes, set storage.encrypted=true" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Volumes of Secrets: what mounts them is named alike. Files are root's and readable by the pod's group (fsGroup). */}}
{{- define "ingero-cluster.secrets" -}}
{{- $v := .Values -}}
{{- $echo := ne $v.mode "fleet" -}}
{{- $list := list (dict "name" "tls" "from" (dict "secretName" $v.tls.secretName "key" "")) -}}
{{- if $v.tls.clientCa.secretName -}}
{{- $list = append $list (dict "name" "client-ca" "from" $v.tls.clientCa "path" "ca.crt") -}}
{{- end -}}
{{- if $v.auth.aclSecret.secretName -}}
{{- $list = append $list (dict "name" "acl" "from" $v.auth.aclSecret "path" "acl.yaml") -}}
{{- else -}}
{{- $list = append $list (dict "name" "token" "from" $v.auth.tokenSecret "path" "token") -}}
{{- end -}}
{{- if and $v.fleet.alertsSecret.secretName (ne $v.mode "echo") -}}
{{- $list = append $list (dict "name" "alerts" "from" $v.fleet.alertsSecret "path" "alerts.yaml") -}}
{{- end -}}
{{- if and $echo (eq $v.echo.engine "clickhouse") -}}
{{- if $v.echo.clickhouse.passwordSecret.secretName -}}
{{- $list = append $list (dict "name" "clickhouse" "from" $v.echo.clickhouse.passwordSecret "path" "password") -}}
{{- end -}}
{{- if $v.echo.clickhouse.readerPasswordSecret.secretName -}}
{{- $list = append $list (dict "name" "clickhouse-reader" "from" $v.echo.clickhouse.readerPasswordSecret "path" "password") -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "list" $list) -}}
{{- end -}}

{{/* In flags that hold free text "$(" is doubled: kubelet would put a variable there. */}}
{{- define "ingero-cluster.args" -}}
{{- $v := .Values -}}
{{- $name := include "ingero-cluster.fullname" . -}}
- {{ $v.mode }}
{{- if eq $v.mode "echo" }}
- --otlp-addr=:4317
- --http-addr=:4318
- --mcp-addr=:8081
{{- else }}
- --grpc-addr=:4317
- --http-addr=:4318
- --api-addr=:8080
- --snapshot=/var/lib/ingero/fleet-snapshot
- {{ printf "--push-interval=%s" $v.fleet.pushInterval | quote }}
- {{ printf "--quorum=%d" (int64 $v.fleet.quorum) | quote }}
- {{ printf "--max-nodes=%d" (int64 $v.fleet.maxNodes) | quote }}
{{- with $v.fleet.provider }}
- {{ printf "--provider=%s" . | quote }}
{{- end }}
{{- with $v.fleet.nodePage }}
- {{ printf "--node-page=%s" . | replace "$(" "$$(" | quote }}
{{- end }}
{{- if $v.fleet.alertsSecret.secretName }}
- --alerts=/etc/ingero-secrets/alerts/alerts.yaml
{{- end }}
{{- end }}
{{- if ne $v.mode "fleet" }}
- --health-addr=:8082
- --db-path=/var/lib/ingero/echo
- {{ printf "--engine=%s" $v.echo.engine | quote }}
- {{ printf "--retention=%s" $v.echo.retention | quote }}
- {{ printf "--max-size=%s" $v.echo.maxSize | quote }}
- {{ printf "--journal-size=%s" $v.echo.journalSize | quote }}
- {{ printf "--memory=%s" $v.echo.memory | quote }}
{{- if eq $v.echo.engine "clickhouse" }}
{{- $c := $v.echo.clickhouse }}
{{- range $c.urls }}
- {{ printf "--clickhouse=%s" . | replace "$(" "$$(" | quote }}
{{- end }}
{{- with $c.cluster }}
- {{ printf "--clickhouse-cluster=%s" . | replace "$(" "$$(" | quote }}
{{- end }}
- {{ printf "--clickhouse-database=%s" $c.database | replace "$(" "$$(" | quote }}
- {{ printf "--clickhouse-user=%s" $c.user | replace "$(" "$$(" | quote }}
{{- if $c.passwordSecret.secretName }}
- --clickhouse-password-file=/etc/ingero-secrets/clickhouse/password
{{- end }}
{{- with $c.reader }}
- {{ printf "--clickhouse-reader=%s" . | replace "$(" "$$(" | quote }}
{{- end }}
{{- if $c.readerPasswordSecret.secretName }}
- --clickhouse-reader-password-file=/etc/ingero-secrets/clickhouse-reader/password
{{- end }}
{{- end }}
{{- end }}
- --tls-cert=/etc/ingero-secrets/tls/tls.crt
- --tls-key=/etc/ingero-secrets/tls/tls.key
{{- if $v.tls.clientCa.secretName }}
- --client-ca=/etc/ingero-secrets/client-ca/ca.crt
{{- end }}
{{- if $v.auth.aclSecret.secretName }}
- --bearer-acl-file=/etc/ingero-secrets/acl/acl.yaml
{{- else }}
- --token-file=/etc/ingero-secrets/token/token
{{- end }}
{{- range concat (list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace)) $v.allowHosts }}
- {{ printf "--allow-host=%s" . | quote }}
{{- end }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* `fleet` answers about its health at the API's port alone. */}}
{{- define "ingero-cluster.probe" -}}
{{- if ne .mode "fleet" -}}
httpGet:
  path: {{ .path }}
  port: health
{{- else if .clientCa -}}
tcpSocket: # kubelet has no client certificate
  port: api
{{- else -}}
httpGet:
  path: {{ .path }}
  port: api
  scheme: HTTPS
{{- end -}}
{{- end -}}

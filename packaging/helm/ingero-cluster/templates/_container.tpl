{{/* SPDX-License-Identifier: Apache-2.0 */}}
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

{{/* The image with DuckDB's library, where DuckDB is used. */}}
{{- define "ingero-cluster.library" -}}
{{- if and (ne .Values.mode "fleet") (eq .Values.echo.engine "duckdb") (ne .Values.echo.libraryImage "none") -}}
{{- required "echo.libraryImage is needed with echo.engine=duckdb: an image of yours with DuckDB's library, as `make image` makes it; or none, if the library is in image.repository" .Values.echo.libraryImage -}}
{{- end -}}
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

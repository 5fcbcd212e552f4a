{{/* SPDX-License-Identifier: Apache-2.0 */}}
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
{{- if and (lookup "v1" "Namespace" "" "kube-system") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- fail "serviceMonitor.enabled needs the Prometheus operator, which this cluster does not have: install it, or set it to false" -}}
{{- end -}}
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
{{- if and (include "ingero-cluster.library" .) (semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "echo.libraryImage needs Kubernetes 1.33 or newer, which mounts images as volumes; this is %s: put libduckdb.so into an image of your own (image.repository) and set echo.libraryImage=none, or use echo.engine=clickhouse or mode=fleet" .Capabilities.KubeVersion.Version) -}}
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

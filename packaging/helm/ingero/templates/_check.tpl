{{/* SPDX-License-Identifier: Apache-2.0 */}}
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
{{- if or .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- if and (lookup "v1" "Namespace" "" "kube-system") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- fail "metrics.serviceMonitor and metrics.podMonitor need the Prometheus operator, which this cluster does not have: install it, or set both to false and let Prometheus scrape the Service" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.dashboard.enabled .Values.metrics.enabled (eq (int .Values.dashboard.port) (int .Values.metrics.port)) -}}
{{- fail (printf "dashboard.port and metrics.port are both %d: one pod has both" (int .Values.metrics.port)) -}}
{{- end -}}
{{- end -}}

{{- /* The configuration file, with what the chart decides, once the values make sense together. */ -}}

{{- define "featurewatch.config" -}}
{{- include "featurewatch.check" . -}}
{{- $config := deepCopy .Values.config -}}
{{- $listen := dict "host" .Values.listenAddress "page_host" .Values.listenAddress -}}
{{- $_ := set $config "web" (merge $listen (default dict $config.web)) -}}
{{- $worker := dict "data_directory" "/var/lib/featurewatch" -}}
{{- $_ := set $config "worker" (merge $worker (default dict $config.worker)) -}}
{{- if .Values.releases -}}
{{- $_ := set $config "releases" (dict "directory" "/etc/featurewatch/releases") -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "featurewatch.check" -}}
{{- $config := .Values.config -}}
{{- $web := default dict $config.web -}}
{{- $notify := default dict $config.notify -}}
{{- if not $config.bus.bootstrap_servers -}}
{{- fail "config.bus.bootstrap_servers is empty: name the Kafka that holds featurewatch's topics (host:port,…); the chart has none of its own" -}}
{{- end -}}
{{- if and .Values.watch.enabled (not $config.clusters) -}}
{{- fail "config.clusters is empty: name the clusters to follow, or set watch.enabled=false" -}}
{{- end -}}
{{- if and .Values.web.enabled (not (or $web.page_without_login $web.config_file $web.token_file)) -}}
{{- fail "web.enabled: the page would have no login. Give it one in config.web, or set config.web.page_without_login=true if only a proxy with a login reaches it (networkPolicy.webFrom)" -}}
{{- end -}}
{{- if and .Values.notify.enabled (not (or $notify.alertmanagers $notify.webhooks)) -}}
{{- fail "notify.enabled: there is no target. Set config.notify.alertmanagers or config.notify.webhooks" -}}
{{- end -}}
{{- end -}}

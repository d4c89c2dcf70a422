{{- /*
The pod of a process. Takes a dict: root (the chart's context), process (watch, worker, web or notify),
port, values (of the process), state and temporary (sizes of its directories, if it has them).
*/ -}}

{{- define "featurewatch.pod" -}}
{{- $root := .root -}}
{{- $process := .process -}}
metadata:
  labels:
    {{- include "featurewatch.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $process }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "featurewatch.config" $root | sha256sum }}
    {{- with $root.Values.releases }}
    checksum/releases: {{ toJson . | sha256sum }}
    {{- end }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "featurewatch.serviceAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 15
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "featurewatch.podSecurity" $root | nindent 4 }}
  containers:
    - name: {{ $process }}
      image: {{ include "featurewatch.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [{{ $process }}]
      env:
        - name: FEATUREWATCH_CONFIG
          value: /etc/featurewatch/featurewatch.yaml
        {{- if eq $process "worker" }}
        # Its static membership in the consumer group: a pod that comes back has its partitions at once.
        - name: FEATUREWATCH_WORKER__ID
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- end }}
        {{- with $root.Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: {{ .port }}
      # A cluster that cannot be reached is no reason to begin anew, so only readiness asks for it.
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $root.Values.scheme }}}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ $root.Values.scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $root.Values.scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      securityContext:
        {{- include "featurewatch.containerSecurity" $root | nindent 8 }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/featurewatch/featurewatch.yaml
          subPath: featurewatch.yaml
          readOnly: true
        {{- if $root.Values.releases }}
        - name: releases
          mountPath: /etc/featurewatch/releases
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
        {{- if .state }}
        - name: state
          mountPath: /var/lib/featurewatch
        {{- end }}
        {{- range $root.Values.secrets }}
        {{- if or (not .processes) (has $process .processes) }}
        - name: secret-{{ .name | replace "." "-" }}
          mountPath: /etc/featurewatch/secrets/{{ .name }}
          readOnly: true
        {{- end }}
        {{- end }}
        {{- with $root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "featurewatch.fullname" $root }}
    {{- if $root.Values.releases }}
    - name: releases
      configMap:
        name: {{ include "featurewatch.fullname" $root }}-releases
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ default "64Mi" .temporary }}
    {{- with .state }}
    - name: state
      emptyDir:
        sizeLimit: {{ . }}
    {{- end }}
    {{- range $root.Values.secrets }}
    {{- if or (not .processes) (has $process .processes) }}
    - name: secret-{{ .name | replace "." "-" }}
      secret:
        secretName: {{ .name }}
        defaultMode: 0440
    {{- end }}
    {{- end }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if $root.Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml $root.Values.topologySpreadConstraints | nindent 4 }}
  {{- else if gt (int (default 1 .values.replicas)) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "featurewatch.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $process }}
  {{- end }}
{{- end -}}

{{- define "featurewatch.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "featurewatch.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

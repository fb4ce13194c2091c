{{/*
The sidecar, one entry of a list. Put it first of the pod's initContainers, or, with
sidecar.nativeSidecar false, last of its containers.
*/}}
{{- define "grapevine-sidecar.container" -}}
{{- $sidecar := .values.sidecar -}}
{{- $proxies := eq $sidecar.mode "proxy" -}}
- name: grapevine
  image: {{ include "grapevine-sidecar.image" . | quote }}
  imagePullPolicy: {{ .values.image.pullPolicy }}
  {{- if $sidecar.nativeSidecar }}
  restartPolicy: Always
  {{- end }}
  args:
    - run
    - --config
    - /etc/grapevine/config/sidecar.yaml
    {{- if $sidecar.watchRules }}
    - --rules-from
    - {{ include "grapevine-sidecar.rulesConfigMapName" . }}
    {{- else }}
    - --rules
    - /etc/grapevine/rules
    {{- end }}
  env:
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: POD_IP
      valueFrom:
        fieldRef:
          fieldPath: status.podIP
    - name: POD_UID
      valueFrom:
        fieldRef:
          fieldPath: metadata.uid
    {{- if $proxies }}
    - name: GRAPEVINE_PROXY_UPSTREAM
      value: {{ printf "%s://127.0.0.1:%s" $sidecar.appProtocol (include "grapevine-sidecar.appPortNumber" .) | quote }}
    {{- with $sidecar.trustedProxies }}
    - name: GRAPEVINE_PROXY_TRUSTED_PROXIES
      value: {{ join "," . | quote }}
    {{- end }}
    {{- end }}
    {{- with $sidecar.logLevel }}
    - name: GRAPEVINE_LOG_LEVEL
      value: {{ . | quote }}
    {{- end }}
  ports:
    {{- if $proxies }}
    - name: {{ include "grapevine-sidecar.proxyPortName" . }}
      containerPort: 7980
      protocol: TCP
    {{- end }}
    - name: rl-gossip
      containerPort: 7946
      protocol: TCP
    - name: rl-gossip-udp
      containerPort: 7946
      protocol: UDP
    - name: rl-telemetry
      containerPort: 7990
      protocol: TCP
  startupProbe:
    httpGet:
      path: /startupz
      port: rl-telemetry
    periodSeconds: 1
    timeoutSeconds: 2
    failureThreshold: 120
  readinessProbe:
    httpGet:
      path: /readyz
      port: rl-telemetry
    periodSeconds: 5
    timeoutSeconds: 2
    failureThreshold: 3
  livenessProbe:
    httpGet:
      path: /livez
      port: rl-telemetry
    periodSeconds: 10
    timeoutSeconds: 2
    failureThreshold: 6
  lifecycle:
    preStop:
      exec:
        command:
          - grapevine
          - drain
          - --wait
          - {{ $sidecar.drainWait | quote }}
  resources:
    {{- toYaml $sidecar.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop:
        - ALL
    readOnlyRootFilesystem: true
    runAsGroup: 65532
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: RuntimeDefault
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - name: grapevine-config
      mountPath: /etc/grapevine/config
      readOnly: true
    {{- if not $sidecar.watchRules }}
    - name: grapevine-rules
      mountPath: /etc/grapevine/rules
      readOnly: true
    {{- end }}
    - name: grapevine-keys
      mountPath: /etc/grapevine/keys
      readOnly: true
    - name: grapevine-state
      mountPath: /var/lib/grapevine
    {{- if include "grapevine-sidecar.needsToken" . }}
    - name: grapevine-api
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- end }}
{{- end }}

{{/* Not empty where the sidecar asks the API: for its peers, or for its rules. */}}
{{- define "grapevine-sidecar.needsToken" -}}
{{- if or (eq .values.discovery "kubernetes") .values.sidecar.watchRules -}}true{{- end -}}
{{- end }}

{{/* The volumes that the container mounts, entries of the pod's list. */}}
{{- define "grapevine-sidecar.volumes" -}}
- name: grapevine-config
  configMap:
    name: {{ include "grapevine-sidecar.configMapName" . }}
{{- if not .values.sidecar.watchRules }}
- name: grapevine-rules
  configMap:
    name: {{ include "grapevine-sidecar.rulesConfigMapName" . }}
    optional: true
{{- end }}
- name: grapevine-keys
  secret:
    secretName: {{ include "grapevine-sidecar.keysSecretName" . }}
- name: grapevine-state
  emptyDir:
    sizeLimit: 64Mi
{{- if include "grapevine-sidecar.needsToken" . }}
- name: grapevine-api
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
{{- end }}

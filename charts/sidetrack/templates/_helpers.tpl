{{/* Returns the labels of every object. They are not those by which pods are selected: these are as in container/. */}}
{{- define "sidetrack.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Returns the name of an image: (list . IMAGE NAME-OF-THE-VALUE) */}}
{{- define "sidetrack.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 }}{{ $value := index . 2 }}
{{- if regexMatch "@|:[^/]*$" $image.repository }}
{{- fail (printf "%s.repository: '%s': expected a name without tag or digest, which %s.tag takes" $value $image.repository $value) }}
{{- end }}
{{- $tag := default $root.Chart.AppVersion $image.tag }}
{{- printf "%s%s%s" $image.repository (hasPrefix "sha256:" $tag | ternary "@" ":") $tag }}
{{- end }}

{{/* Returns the directories of the node as {"bin", "net"}: those that are named, else the platform's (docs/cni.md has the table). */}}
{{- define "sidetrack.directories" -}}
{{- $platforms := dict
    "gke" (dict "bin" "/home/kubernetes/bin")
    "k3s" (dict "bin" "/var/lib/rancher/k3s/data/cni" "net" "/var/lib/rancher/k3s/agent/etc/cni/net.d")
    "microk8s" (dict "bin" "/var/snap/microk8s/current/opt/cni/bin" "net" "/var/snap/microk8s/current/args/cni-network")
    "openshift" (dict "bin" "/var/lib/cni/bin" "net" "/etc/cni/multus/net.d") }}
{{- $platform := get $platforms .Values.cni.platform | default dict }}
{{- dict "bin" (.Values.cni.binDir | default $platform.bin | default "/opt/cni/bin")
         "net" (.Values.cni.netDir | default $platform.net | default "/etc/cni/net.d") | toJson }}
{{- end }}

{{/* Returns the options that name the node's directories, as a list in JSON. */}}
{{- define "sidetrack.directoryOptions" -}}
{{- $options := list }}
{{- range $name, $value := dict "--platform" .Values.cni.platform "--bin-dir" .Values.cni.binDir "--net-dir" .Values.cni.netDir }}
{{- if $value }}{{ $options = concat $options (list $name $value) }}{{ end }}
{{- end }}
{{- toJson $options }}
{{- end }}

{{/* Returns the options of `sidetrack cni install` beside the directories, as a list in JSON. */}}
{{- define "sidetrack.installOptions" -}}
{{- $cni := .Values.cni }}
{{- $options := list }}
{{- with $cni.excludeNamespaces }}{{ $options = concat $options (list "--exclude-namespaces" (join "," .)) }}{{ end }}
{{- range $name, $set := dict "--dual-stack" $cni.dualStack "--redirect-dns" $cni.dns "--drop-invalid" $cni.dropInvalid }}
{{- if $set }}{{ $options = append $options $name }}{{ end }}
{{- end }}
{{- if ne $cni.backend "auto" }}{{ $options = concat $options (list "--backend" $cni.backend) }}{{ end }}
{{- if ne $cni.dataplane "sidecar" }}{{ $options = concat $options (list "--dataplane" $cni.dataplane) }}{{ end }}
{{- $named := list
    (list "--proxy-uid" $cni.uid) (list "--proxy-gid" $cni.gid)
    (list "--envoy-port" $cni.envoyPort) (list "--inbound-capture-port" $cni.inboundCapturePort)
    (list "--inbound-tunnel-port" $cni.inboundTunnelPort) (list "--istio-inbound-tproxy-mark" $cni.tproxyMark)
    (list "--istio-inbound-tproxy-route-table" $cni.tproxyRouteTable)
    (list "--probe-address" $cni.probeAddress) (list "--probe-address6" $cni.probeAddress6) (list "--plugin-log" $cni.logFile) }}
{{- range $named }}
{{- $value := index . 1 }}
{{- if kindIs "string" $value }}{{ $options = concat $options (list (index . 0) $value) }}
{{- else if not (kindIs "invalid" $value) }}{{ $options = concat $options (list (index . 0) (toString (int64 $value))) }}
{{- end }}
{{- end }}
{{- toJson (concat $options $cni.args) }}
{{- end }}

{{/* Returns the spec of the DaemonSet that installs the CNI plugin on every node, or uninstalls it: (list . UNINSTALL) */}}
{{- define "sidetrack.cniSpec" -}}
{{- $root := index . 0 }}{{ $uninstall := index . 1 }}
{{- $cni := $root.Values.cni }}
{{- $directories := include "sidetrack.directories" $root | fromJson }}
{{- $directoryOptions := include "sidetrack.directoryOptions" $root | fromJsonArray -}}
selector:
  matchLabels: {app: sidetrack-cni}
updateStrategy:
  rollingUpdate: {maxUnavailable: {{ $cni.maxUnavailable }}}
template:
  metadata:
    labels: {app: sidetrack-cni}
    {{- with $cni.podAnnotations }}
    annotations: {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    hostNetwork: true # starts before there is a network for pods
    automountServiceAccountToken: false # it talks to nobody
    enableServiceLinks: false
    {{- with $cni.serviceAccountName }}
    serviceAccountName: {{ . }}
    {{- end }}
    {{- with $cni.priorityClassName }}
    priorityClassName: {{ . }}
    {{- end }}
    {{- with $root.Values.imagePullSecrets }}
    imagePullSecrets: {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $cni.tolerations }}
    tolerations: {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $cni.nodeSelector }}
    nodeSelector: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $cni.affinity }}
    affinity: {{- toYaml . | nindent 6 }}
    {{- end }}
    terminationGracePeriodSeconds: 5
    securityContext:
      seccompProfile: {type: RuntimeDefault}
      {{- with $cni.seLinuxOptions }}
      seLinuxOptions: {{- toYaml . | nindent 8 }}
      {{- end }}
    containers:
    - name: sidetrack-cni
      image: {{ include "sidetrack.image" (list $root $root.Values.image "image") | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      {{- if $uninstall }}
      args: {{- concat (list "cni" "uninstall" "--watch") $directoryOptions | toYaml | nindent 6 }}
      readinessProbe: # ready: no configuration names it any more
        exec:
          command: {{- concat (list "/usr/bin/sidetrack" "cni" "uninstall") $directoryOptions | toYaml | nindent 10 }}
        periodSeconds: 10
      {{- else }}
      args: {{- concat (list "cni" "install" "--watch") $directoryOptions (include "sidetrack.installOptions" $root | fromJsonArray) | toYaml | nindent 6 }}
      readinessProbe: # ready: the plugin is installed, of this version, and the last of its chain
        exec:
          command: {{- concat (list "/usr/bin/sidetrack" "cni" "status") $directoryOptions | toYaml | nindent 10 }}
        periodSeconds: 10
      {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      {{- with $cni.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        runAsGroup: 0
        runAsNonRoot: false
        runAsUser: 0 # the directories are root's; no capability is needed
        capabilities:
          drop: [ALL]
      volumeMounts: # at their own paths: the plugin is told where the configuration is
      - {name: bin, mountPath: {{ $directories.bin | quote }}}
      - {name: net, mountPath: {{ $directories.net | quote }}}
      {{- if $uninstall }}
      - {name: records, mountPath: /run/sidetrack, readOnly: true} # the program stays as long as a pod may need it
      - {name: cache, mountPath: /var/lib/cni, readOnly: true}
      {{- end }}
    volumes:
    - name: bin # the program is put here
      hostPath: {path: {{ $directories.bin | quote }}, type: DirectoryOrCreate}
    - name: net # the entry is put into the configuration here
      hostPath: {path: {{ $directories.net | quote }}, type: DirectoryOrCreate}
    {{- if $uninstall }}
    - name: records
      hostPath: {path: /run/sidetrack, type: DirectoryOrCreate}
    - name: cache
      hostPath: {path: /var/lib/cni, type: DirectoryOrCreate}
    {{- end }}
{{- end }}

# Completion of sidetrack and istio-iptables by fish:  sidetrack completion fish | source

# COMMAND...: is it one of these whose options are typed? '': none yet
function __sidetrack_is
    set -l words (commandline -opc)
    set -l command ''
    if string match -qr '(^|/)istio-iptables$' -- $words[1]
        set command apply
    else if set -q words[2]
        set command $words[2]
        string match -qr '^(-|istio-iptables$)' -- $command
        and set command apply
    else if string match -q -- '-*' (commandline -ct)
        set command apply
    end
    contains -- $command $argv
end

# NUMBER COMMAND: is the word being typed the Nth after this command?
function __sidetrack_word
    set -l words (commandline -opc)
    test (count $words) -eq (math $argv[1] + 1)
    and test "$words[2]" = $argv[2]
end

# WORD...: of a list, after its last comma; or @FILE
function __sidetrack_items
    set -l typed (string replace -r '^(--[^=]*=|-[^-])' '' -- (commandline -ct))
    if string match -q '@*' -- $typed
        printf '@%s\n' (__fish_complete_path (string sub -s 2 -- $typed))
    else
        set -l before (string match -r '^.*,' -- $typed)
        printf '%s\n' "$before"$argv
    end
end

# FOLDER: the names of the files there
function __sidetrack_names
    for file in $argv[1]/*
        string replace -r '.*/' '' -- $file
    end
end

complete -c sidetrack -f
complete -c istio-iptables -f
complete -c sidetrack -n "__sidetrack_is ''" -a istio-iptables -d 'the form of istio-iptables'
complete -c sidetrack -n "__sidetrack_is ''" -a help -d 'the help of a command'
complete -c sidetrack -n "__sidetrack_is ''" -a version -d 'the version'
complete -c sidetrack -n "__sidetrack_is ''" -a apply -d 'program the rules in this pod'
complete -c sidetrack -n '__sidetrack_word 1 help' -a apply -d 'program the rules in this pod'
complete -c sidetrack -n "__sidetrack_is ''" -a render -d 'print what apply would program; touch nothing'
complete -c sidetrack -n '__sidetrack_word 1 help' -a render -d 'print what apply would program; touch nothing'
complete -c sidetrack -n "__sidetrack_is ''" -a diff -d 'what apply would change; exit 6 if anything'
complete -c sidetrack -n '__sidetrack_word 1 help' -a diff -d 'what apply would change; exit 6 if anything'
complete -c sidetrack -n "__sidetrack_is ''" -a verify -d 'check that rules and routes are as requested; exit 6 if not'
complete -c sidetrack -n '__sidetrack_word 1 help' -a verify -d 'check that rules and routes are as requested; exit 6 if not'
complete -c sidetrack -n "__sidetrack_is ''" -a show -d 'what is programmed and by whom, with counters and reasons'
complete -c sidetrack -n '__sidetrack_word 1 help' -a show -d 'what is programmed and by whom, with counters and reasons'
complete -c sidetrack -n "__sidetrack_is ''" -a explain -d 'which rule decides about this packet, and why'
complete -c sidetrack -n '__sidetrack_word 1 help' -a explain -d 'which rule decides about this packet, and why'
complete -c sidetrack -n '__sidetrack_word 1 explain' -a 'out in lo'
complete -c sidetrack -n '__sidetrack_word 2 explain' -a 'tcp udp icmp'
complete -c sidetrack -n "__sidetrack_is ''" -a map -d 'what becomes of all traffic, and which option is the reason'
complete -c sidetrack -n '__sidetrack_word 1 help' -a map -d 'what becomes of all traffic, and which option is the reason'
complete -c sidetrack -n "__sidetrack_is ''" -a lint -d 'options or live rules: what has no effect, loops or escapes'
complete -c sidetrack -n '__sidetrack_word 1 help' -a lint -d 'options or live rules: what has no effect, loops or escapes'
complete -c sidetrack -n "__sidetrack_is ''" -a clean -d 'remove every trace, whichever version, flags or backend left it'
complete -c sidetrack -n '__sidetrack_word 1 help' -a clean -d 'remove every trace, whichever version, flags or backend left it'
complete -c sidetrack -n "__sidetrack_is ''" -a doctor -d 'what this kernel and container allow, and what is missing'
complete -c sidetrack -n '__sidetrack_word 1 help' -a doctor -d 'what this kernel and container allow, and what is missing'
complete -c sidetrack -n "__sidetrack_is ''" -a pods -d 'the node\'s pods: what is captured, and whether as recorded'
complete -c sidetrack -n '__sidetrack_word 1 help' -a pods -d 'the node\'s pods: what is captured, and whether as recorded'
complete -c sidetrack -n "__sidetrack_is ''" -a args -d 'what istio-init gets for a pod\'s manifest, and why'
complete -c sidetrack -n '__sidetrack_word 1 help' -a args -d 'what istio-init gets for a pod\'s manifest, and why'
complete -c sidetrack -n "__sidetrack_is ''" -a inject -d 'put istio-init and a proxy of your own into a pod\'s manifest'
complete -c sidetrack -n '__sidetrack_word 1 help' -a inject -d 'put istio-init and a proxy of your own into a pod\'s manifest'
complete -c sidetrack -n "__sidetrack_is ''" -a cni -d 'the CNI plugin of this node'
complete -c sidetrack -n '__sidetrack_word 1 help' -a cni -d 'the CNI plugin of this node'
complete -c sidetrack -n '__sidetrack_word 1 cni' -a 'install uninstall status'
complete -c sidetrack -n "__sidetrack_is ''" -a completion -d 'print the completion script for a shell'
complete -c sidetrack -n '__sidetrack_word 1 help' -a completion -d 'print the completion script for a shell'
complete -c sidetrack -n '__sidetrack_word 1 completion' -a 'bash zsh fish'
complete -c sidetrack -n 'test (count (commandline -opc)) -eq 1' -l version -d 'the version'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s p -l envoy-port -d 'the proxy\'s port for outbound' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s z -l inbound-capture-port -d 'the proxy\'s port for inbound' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s e -l inbound-tunnel-port -d 'the proxy\'s port for HBONE' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s u -l proxy-uid -d 'the proxy\'s uid' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s g -l proxy-gid -d 'the proxy\'s gid' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s m -l istio-inbound-interception-mode -d 'how inbound is captured' -x -a 'REDIRECT TPROXY NONE'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s b -l istio-inbound-ports -d 'inbound: capture these' -x -a '(__sidetrack_items \'*\')'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s d -l istio-local-exclude-ports -d 'inbound: all but these, with -b \'*\'' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l include-inbound-ranges -d 'inbound: capture only from these' -x -a '(__sidetrack_items \'*\')'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l exclude-inbound-ranges -d 'inbound: not from these sources' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s c -l istio-exclude-interfaces -d 'leave these interfaces alone' -x -a '(__sidetrack_items (__sidetrack_names /sys/class/net))'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s i -l istio-service-cidr -d 'outbound: capture these ranges' -x -a '(__sidetrack_items \'*\')'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s x -l istio-service-exclude-cidr -d 'outbound: not these ranges' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s q -l istio-outbound-ports -d 'outbound: these ports too, anywhere' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s o -l istio-local-outbound-ports-exclude -d 'outbound: not these ports' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -s k -l kube-virt-interfaces -d 'traffic from them is outbound' -x -a '(__sidetrack_items (__sidetrack_names /sys/class/net))'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s t -l istio-inbound-tproxy-mark -d 'the mark of TPROXY\'s packets' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -s r -l istio-inbound-tproxy-route-table -d 'TPROXY\'s routing table' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l exclude-uids -d 'outbound: skip traffic from these UIDs' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l exclude-gids -d 'outbound: not of these groups' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l exclude-uid-ports -d 'outbound: skip traffic from these UIDs to these ports' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l bypass-cgroup -d 'outbound: not from these cgroups (v2)' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l capture-udp -d 'inbound: also capture these UDP ports, with -m TPROXY' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l redirect-dns -d 'capture DNS to resolv.conf\'s servers'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l capture-all-dns -d 'with --redirect-dns: to any server'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l track-forwarded-dns -d 'with --redirect-dns: replies reach hosts behind -k'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l drop-invalid -d 'drop packets of unknown connections'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l dual-stack -d 'IPv6 too, if the pod has it'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l dataplane -d 'the proxy in the pod, or the node\'s ztunnel' -x -a 'sidecar ambient'
complete -c sidetrack -n '__sidetrack_is show clean' -l dataplane -d 'ambient: an agent\'s rules count, too' -x -a 'sidecar ambient'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l probe-address -d 'where the kubelet\'s probes come from' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint cni' -l probe-address6 -d 'where they come from in IPv6' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l ingress -d 'leave inbound alone: a gateway'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l ip-families -d 'ipv4 or ipv4,ipv6' -x -a '(__sidetrack_items ipv4 ipv6)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l dns-server -d 'servers for --redirect-dns' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -s n -l dry-run -d 'print the rules, touch nothing (render)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l strict -d 'fail if other programs\' rules interfere'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l check -d 'check that the kernel would accept the rules'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l prove -d 'refuse rules by which traffic escapes or loops'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l when-ready -d 'first wait, 60s, until proxy or ztunnel listens' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l confirm -d 'roll back unless confirmed in that time' -x
complete -c sidetrack -n '__sidetrack_is verify' -l probe -d 'try real connections, too'
complete -c sidetrack -n '__sidetrack_is diff' -l clean -d 'show what clean would remove'
complete -c sidetrack -n '__sidetrack_is show' -l watch -d 'refresh every second, and mark the counters that move'
complete -c sidetrack -n '__sidetrack_is cni' -l watch -d 'keep running, and reinstall when removed'
complete -c sidetrack -n '__sidetrack_is cni' -l platform -d 'the folders of this platform' -x -a 'aks eks gke k3s kind microk8s minikube openshift rke2'
complete -c sidetrack -n '__sidetrack_is cni' -l bin-dir -d 'where the runtime looks for plugins' -r -F
complete -c sidetrack -n '__sidetrack_is cni' -l net-dir -d 'the runtime\'s CNI configuration' -r -F
complete -c sidetrack -n '__sidetrack_is cni' -l exclude-namespaces -d 'install: do not intercept pods of these' -x -a '(__sidetrack_items (__sidetrack_names /sys/class/net))'
complete -c sidetrack -n '__sidetrack_is cni' -l plugin-log -d 'install: where the plugin logs' -r -F
complete -c sidetrack -n '__sidetrack_is cni' -l allow-dynamic -d 'install: allow a program that needs libraries'
complete -c sidetrack -n '__sidetrack_is cni' -l now -d 'uninstall: remove the program, whichever pods need it'
complete -c sidetrack -n '__sidetrack_is explain map lint' -l plan -d 'the rules of the given options, not the live ones'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor cni' -l backend -d 'which backend holds the rules' -x -a 'auto nftables iptables-nft iptables-legacy'
complete -c sidetrack -n '__sidetrack_is args inject' -s f -l filename -d 'the manifest, YAML or JSON; - for standard input' -r -F
complete -c sidetrack -n '__sidetrack_is inject' -l template -d 'the containers and volumes to put into pods' -r -F
complete -c sidetrack -n '__sidetrack_is render diff verify explain map lint' -l pod -d 'a pod\'s manifest in place of options' -r -F
complete -c sidetrack -n '__sidetrack_is render diff verify explain map lint args inject' -l set -d 'one of Istio\'s Helm values' -x
complete -c sidetrack -n '__sidetrack_is render diff verify explain map lint args inject' -l values -d 'a file of Istio\'s Helm values' -r -F
complete -c sidetrack -n '__sidetrack_is render diff verify explain map lint args' -l injector -d 'whose webhook injects the pod' -x -a 'istio sidetrack'
complete -c sidetrack -n '__sidetrack_is args' -l why -d 'which annotation or default gives each argument'
complete -c sidetrack -n '__sidetrack_is pods' -l repair -d 'apply what is recorded where it differs'
complete -c sidetrack -n '__sidetrack_is pods' -l metrics -d 'write metrics for node_exporter\'s textfiles' -r -F
complete -c sidetrack -n '__sidetrack_is pods' -l pod-timeout -d 'time limit for each pod' -x
complete -c sidetrack -n '__sidetrack_is pods cni' -l records -d 'the CNI plugin\'s records' -r -F
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply clean' -l wait -d 'how long to wait for other writers' -x
complete -c sidetrack -n '__sidetrack_is explain' -l uid -d 'uid of the sender' -x
complete -c sidetrack -n '__sidetrack_is explain' -l gid -d 'the group that sends it' -x
complete -c sidetrack -n '__sidetrack_is explain' -l cgroup -d 'the sender\'s cgroup' -r -F
complete -c sidetrack -n '__sidetrack_is explain' -l from -d 'source address' -x
complete -c sidetrack -n '__sidetrack_is explain' -l from-port -d 'source port' -x
complete -c sidetrack -n '__sidetrack_is explain' -l in-interface -d 'the interface it arrives on' -x -a '(__sidetrack_names /sys/class/net)'
complete -c sidetrack -n '__sidetrack_is explain' -l out-interface -d 'the interface it leaves by' -x -a '(__sidetrack_names /sys/class/net)'
complete -c sidetrack -n '__sidetrack_is explain' -l mark -d 'the mark of its socket' -x
complete -c sidetrack -n '__sidetrack_is explain' -l state -d 'the state of its connection' -x -a 'new established reply invalid'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor' -l netns -d 'work in this network namespace' -r -F -a '(__sidetrack_names /run/netns)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor' -l pid -d 'work in this process\'s namespaces' -x -a '(__fish_complete_pids)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor' -l host -d 'allow the caller\'s own network namespace'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods' -l no-sandbox -d 'keep capabilities and system calls that are not needed'
complete -c sidetrack -n '__sidetrack_is args inject cni' -l no-sandbox -d 'keep capabilities and system calls that are not needed'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render' -l format -d 'the format of the result' -x -a 'text nft json svg'
complete -c sidetrack -n '__sidetrack_is diff verify show explain lint doctor pods args cni' -l format -d 'the format of the result' -x -a 'text json'
complete -c sidetrack -n '__sidetrack_is map' -l format -d 'the format of the result' -x -a 'text json svg'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint doctor pods args cni' -l json -d '--format json'
complete -c sidetrack -n '__sidetrack_is diff' -l effect -d 'compare by effect: which packets end otherwise'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render map' -l family -d 'print only this family\'s rules' -x -a 'ipv4 ipv6'
complete -c sidetrack -n '__sidetrack_is map' -l way -d 'only what goes out, comes in, or goes over lo' -x -a 'out in lo'
complete -c sidetrack -n '__sidetrack_is explain' -l brief -d 'only the outcome'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor' -l color -d 'whether to colour the result' -x -a 'auto always never'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply verify' -l iptables-probe-port -d 'the port that validation connects to' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply verify' -l probe-timeout -d 'the time limit of validation' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l skip-rule-apply -d 'program nothing'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l run-validation -d 'then test the interception with a real connection; exit 126 if it fails'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l network-namespace -d 'as --netns' -r -F
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l cni-mode -d 'called by a CNI plugin on the node'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l reconcile -d 'accepted: apply always replaces what differs'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l cleanup-only -d 'as the command clean'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply' -l force-apply -d 'rewrite even equal rules'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l native-nftables -d 'as --backend nftables'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify explain map lint' -l force-iptables-binary -d 'as --backend iptables-legacy, iptables-nft' -x -a 'legacy nft'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l log_output_level -d 'debug, info, warn, error, fatal or none' -x -a '(__sidetrack_items debug info warn error fatal none)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l log_as_json -d 'one JSON object per line'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l log_target -d 'stdout, stderr or a path; may be repeated' -r -F -a 'stdout stderr'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l log_caller -d 'add the source line of each message' -x -a '(__sidetrack_items )'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l log_stacktrace_level -d 'accepted, without effect' -x -a '(__sidetrack_items debug info warn error fatal none)'
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni' -l vklog -d 'accepted, without effect' -x
complete -c istio-iptables -c sidetrack -n '__sidetrack_is apply render diff verify show explain map lint clean doctor pods args inject cni completion' -s h -l help -d 'this text'

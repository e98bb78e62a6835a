# Completion of sidetrack and istio-iptables by fish:  sidetrack completion fish | source

function __sidetrack_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program sidetrack
    if string match -q '*/sidetrack' -- $typed[1]
        set program (string replace -r '^~/' $HOME/ -- $typed[1])
    end
    set -l offered ($program __complete $typed "$current" 2>/dev/null)
    set -l head (string split \t -- $offered[1])
    set -e offered[1]
    string join \n -- "$head[2]"$offered
    if test "$head[1]" = files
        set offered (__fish_complete_path (string sub -s (math 1 + (string length -- "$head[2]")) -- "$current"))
        string join \n -- "$head[2]"$offered
    end
end

complete -c sidetrack -f -a '(__sidetrack_complete)'
complete -c istio-iptables -f -a '(__sidetrack_complete)'

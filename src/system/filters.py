#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the seccomp filters of sandbox.cc as a C++ header, by libseccomp:  filters.py ARCHITECTURE HEADER

ARCHITECTURE is that of the program, as `uname -m` names it. What no rule allows raises SIGSYS, whose handler
makes it fail with EPERM.
"""
import errno
import sys
import tempfile

from seccomp import ALLOW, EQ, ERRNO, KILL_PROCESS, MASKED_EQ, TRAP, Arch, Arg, Attr, SyscallFilter

PROT_EXEC = 4
MAP_ANONYMOUS = 0x20
CLONE_THREAD = 0x10000
CLONE_NEW = 0x7E020000  # namespaces: CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET
TCGETS, TIOCGWINSZ, FIONBIO, SIOCGIFNAME, SIOCGIFFLAGS = 0x5401, 0x5413, 0x5421, 0x8910, 0x8913
F_GETFD, F_SETFD, F_GETFL, F_OFD_GETLK, F_OFD_SETLK = 1, 2, 3, 36, 37
AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
SOCK_TYPE = 0xFFFFFFFF & ~0o2004000  # all but SOCK_NONBLOCK and SOCK_CLOEXEC
IPPROTO_RAW, NETLINK_NETFILTER, TCP_NODELAY, MSG_FASTOPEN = 255, 12, 1, 0x20000000
SOL_IP, SOL_SOCKET, SOL_TCP, SOL_IPV6, SOL_NETLINK = 0, 1, 6, 41, 270
IPT_SO_SET_REPLACE, IPT_SO_SET_ADD_COUNTERS = 64, 65
O_WRITES = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, the bit of O_TMPFILE
SOCKADDR_NL = 12  # bytes; every address of another family is longer, and is refused by the kernel if it is cut


def arg(number, value, how=EQ):
    return Arg(number, how, value)


def without(number, bits):
    return Arg(number, MASKED_EQ, bits, 0)


def every(names, *conditions):
    return [(name, *conditions) for name in names.split()]


# Of sendto. With an address, rtnetlink does not ask for the rights with which the socket was opened.
NO_ADDRESS = (arg(4, 0), arg(5, 0))

# What only computes and writes its result.
COMPUTE = [
    *every("brk munmap mremap madvise futex getrandom clock_gettime gettimeofday nanosleep clock_nanosleep"),
    *every("sched_yield sysinfo uname restart_syscall exit exit_group"),
    *every("rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack"),
    *every("getpid gettid getppid getuid geteuid getgid getegid capget"),
    *every("close read readv pread64 lseek fstat newfstatat statx fstatfs statfs access faccessat faccessat2 poll ppoll"),
    ("mmap", without(2, PROT_EXEC), Arg(3, MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS)),
    ("mprotect", without(2, PROT_EXEC)),
    ("prlimit64", arg(2, 0)),
    *[("ioctl", arg(1, request)) for request in (TCGETS, TIOCGWINSZ)],
    *[("fcntl", arg(1, command)) for command in (F_GETFD, F_SETFD, F_GETFL)],
    *every("write writev"),
    ("sendto", *NO_ADDRESS),  # syslog
]

# What reads the rules: sockets to nf_tables and legacy iptables can be opened, but not used for anything else; those of
# rtnetlink have been opened before, without the right to change anything.
READ = COMPUTE + [
    ("socket", arg(0, AF_NETLINK), arg(2, NETLINK_NETFILTER)),
    *[("socket", arg(0, domain), Arg(1, MASKED_EQ, SOCK_TYPE, SOCK_RAW), arg(2, IPPROTO_RAW)) for domain in (AF_INET, AF_INET6)],
    *[("socket", arg(0, domain), Arg(1, MASKED_EQ, SOCK_TYPE, SOCK_DGRAM), arg(2, 0)) for domain in (AF_INET, AF_INET6)],
    ("bind", arg(2, SOCKADDR_NL)),
    *every("getsockname getsockopt recvfrom recvmsg"),
    *[("ioctl", arg(1, request)) for request in (SIOCGIFNAME, SIOCGIFFLAGS)],
    *[("setsockopt", arg(1, level)) for level in (SOL_SOCKET, SOL_NETLINK)],
    *every("capset"),  # only down: once the rules have been got, the right to change them is given up
]

# What changes them.
WRITE = READ + [
    *[("setsockopt", arg(1, level), arg(2, option))
      for level in (SOL_IP, SOL_IPV6) for option in (IPT_SO_SET_REPLACE, IPT_SO_SET_ADD_COUNTERS)],
    *every("flock"),
    *[("fcntl", arg(1, command)) for command in (F_OFD_GETLK, F_OFD_SETLK)],
]

# The CNI plugin, which removes the record of a pod when the rules are gone.
PLUGIN = WRITE + [("unlinkat", arg(2, 0)), *every("fsync")]  # no AT_REMOVEDIR

# What makes connections to try the rules, as the proxy's user too.
PROBE = WRITE + [
    *[("socket", arg(0, domain)) for domain in (AF_INET, AF_INET6, AF_NETLINK)],
    *every("bind connect listen accept4 getpeername sendto sendmsg shutdown setsockopt setfsuid setfsgid"),
]

# What reads files, whichever: the CNI plugins of a node, and their configurations with the links that lead to them.
INSPECT = COMPUTE + [("open", without(1, O_WRITES)), ("openat", without(2, O_WRITES))] + every("readlink readlinkat getdents64")

# What waits for changes of them.
WATCH = INSPECT + every("inotify_init1 inotify_add_watch inotify_rm_watch signalfd4")

# What replaces and removes them, too.
INSTALL = WATCH + every("open openat flock ftruncate fchmod fsync rename renameat renameat2 unlink unlinkat")

# The webhook: connections to a socket that listens already, and certificates that are read again. Threads of its own are no
# processes.
SERVE = WATCH + [
    ("clone", Arg(0, MASKED_EQ, CLONE_THREAD | CLONE_NEW, CLONE_THREAD)),
    *every("set_robust_list rseq gettid"),
    *every("accept accept4 getsockname getsockopt recvfrom recvmsg"),
    ("sendmsg", without(2, MSG_FASTOPEN)),  # it would connect; and so would sendto with an address
    ("setsockopt", arg(1, SOL_SOCKET)),
    ("setsockopt", arg(1, SOL_TCP), arg(2, TCP_NODELAY)),
    ("ioctl", arg(1, FIONBIO)),
    *every("epoll_ctl epoll_wait epoll_pwait timerfd_settime"),
]

FILTERS = {"compute": COMPUTE, "read": READ, "write": WRITE, "plugin": PLUGIN, "probe": PROBE, "inspect": INSPECT,
           "install": INSTALL, "serve": SERVE}


def uncached(order):
    """BPF_LD | BPF_W | BPF_ABS of seccomp_data.instruction_pointer, of which no use is made.

    When a filter is installed, the kernel (5.11) runs it for every system call that there is, to know those that it
    always allows without asking. It ends that at the first instruction that loads something else than the number. For a
    process of two milliseconds, knowing takes longer than asking.
    """
    return (0x20).to_bytes(2, order) + bytes(2) + (8).to_bytes(4, order)


def instructions(rules, architecture, order):
    made = SyscallFilter(TRAP)
    made.set_attr(Attr.ACT_BADARCH, KILL_PROCESS)  # system calls of another ABI
    if not made.exist_arch(Arch(architecture)):
        made.remove_arch(Arch())
        made.add_arch(Arch(architecture))
    whole = {rule[0] for rule in rules if len(rule) == 1}
    for name, *conditions in rules:
        # libseccomp refuses a narrower rule beside one that allows the call.
        if name in whole and conditions:
            continue
        if name == "mmap" and architecture == "s390x":
            conditions = []  # there its arguments are in memory
        if name == "clone":
            # libc tries clone3 first, whose arguments are in memory.
            made.add_rule(ERRNO(errno.ENOSYS), "clone3")
            if architecture == "s390x":
                conditions = [Arg(1, MASKED_EQ, CLONE_THREAD | CLONE_NEW, CLONE_THREAD)]
        made.add_rule(ALLOW, name, *conditions)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return uncached(order) + file.read()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    architecture, header = sys.argv[1:]
    order = "big" if architecture == "s390x" else "little"
    lines = ["// Made by filters.py.", "// NOLINTBEGIN", ""]
    for name, rules in FILTERS.items():
        code = instructions(rules, architecture, order)
        lines.append(f"constexpr sock_filter {name}_filter[] = {{")
        for at in range(0, len(code), 8):
            operation = int.from_bytes(code[at:at + 2], order)
            value = int.from_bytes(code[at + 4:at + 8], order)
            lines.append(f"    {{{operation:#x}, {code[at + 2]}, {code[at + 3]}, {value:#x}}},")
        lines.append("};")
    lines += ["// NOLINTEND", ""]
    with open(header, "w", encoding="ascii") as file:
        file.write("\n".join(lines))


main()

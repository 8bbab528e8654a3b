"""Nothing in the package is there on POSIX systems only, unless it asks first."""

import ast
import re
from pathlib import Path

import pytest

import surestep

SOURCES = sorted(Path(surestep.__file__).parent.rglob("*.py"))
# What Windows does not have, by the "Availability" of the standard library's documentation.
ABSENT = {
    "": """
        crypt curses fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog
        termios tty
    """,
    "os": """
        O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NOATIME O_NOCTTY O_NOFOLLOW
        O_NONBLOCK O_PATH O_RSYNC O_SYNC O_TMPFILE WNOHANG chown chroot confstr
        copy_file_range ctermid fchdir fchmod fchown fdatasync fork forkpty fpathconf
        fstatvfs getegid geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp
        getpriority getresgid getresuid getsid getuid getxattr initgroups killpg lchown
        listxattr lockf memfd_create mkfifo mknod nice openpty pathconf pipe2 posix_fadvise
        posix_fallocate posix_spawn pread preadv pwrite pwritev register_at_fork removexattr
        sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid setgid
        setgroups setpgid setpriority setregid setreuid setsid setuid setxattr splice
        statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid
        waitpid
    """,
    "signal": """
        ITIMER_REAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF SIGQUIT
        SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH alarm pause
        pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait
    """,
    "mmap": """
        MADV_DONTNEED MADV_FREE MADV_HUGEPAGE MADV_RANDOM MADV_SEQUENTIAL MADV_WILLNEED
        MAP_ANONYMOUS MAP_POPULATE MAP_PRIVATE MAP_SHARED PROT_EXEC PROT_READ PROT_WRITE
    """,
    "time": """
        pthread_getcpuclockid tzset
    """,
}
MODULES, NAMES = ABSENT[""].split(), {name: words.split() for name, words in ABSENT.items()}
EVERYTHING = frozenset({"everything"})
PLACES = ("/tmp", "/dev/", "/proc/", "/etc/", "/var/")


SUSPECT = re.compile(
    rf"(?:import|from) (?:{'|'.join(MODULES)})\b|from (?:{'|'.join(NAMES)}) import"
    rf"|\.(?:{'|'.join(name for names in NAMES.values() for name in names)})\b"
    rf"|get_context|preexec_fn|{'|'.join(PLACES)}"
)


def complaints(source):
    """What a source does that Windows cannot, with the line; what it asks for first is left out."""
    if not SUSPECT.search(source):  # most files need not be taken apart
        return []
    used = uses(ast.parse(source), frozenset())
    return [
        f"{node.lineno}: {name}" for node, name, known in used if not known & {name, *EVERYTHING}
    ]


def uses(node, known):
    """Yields what is used below a node, and which names are known to be there at that point."""
    used = name_used(node)
    if used:
        yield node, used, known
    if isinstance(node, ast.If | ast.IfExp):
        here = known | asked_for(node.test)
        yield from uses(node.test, known)
        for part in as_list(node.body):
            yield from uses(part, here)
        yield from in_order(as_list(node.orelse), known)
        return
    for _, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield from in_order([part for part in value if isinstance(part, ast.AST)], known)
        elif isinstance(value, ast.AST):
            yield from uses(value, known)


def in_order(statements, known):
    """Yields the uses of statements; behind a way out for Windows, everything is there."""
    for statement in statements:
        yield from uses(statement, known)
        leaves = isinstance(statement, ast.If) and isinstance(
            statement.body[-1], ast.Return | ast.Raise | ast.Continue
        )
        if leaves and "win32" in ast.unparse(statement.test):
            known = EVERYTHING


def as_list(part):
    return part if isinstance(part, list) else [part]


def name_used(node):
    """The name of something that is not there everywhere, if a node is that."""
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if alias.name in MODULES), None)
    if isinstance(node, ast.ImportFrom):
        missing = NAMES.get(node.module, [])
        names = (f"{node.module}.{alias.name}" for alias in node.names if alias.name in missing)
        return node.module if node.module in MODULES else next(names, None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if node.attr in NAMES.get(node.value.id, ()):
            return f"{node.value.id}.{node.attr}"
        if node.value.id == "multiprocessing" and node.attr in ("fork", "forkserver"):
            return f"multiprocessing.{node.attr}"
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("get_context"):
        kind = ast.unparse(node.args[0]).strip("'\"") if node.args else "default"
        return None if kind == "spawn" else f"processes by {kind}"
    if isinstance(node, ast.keyword) and node.arg == "preexec_fn":
        return "preexec_fn"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value.startswith(PLACES) else None
    return None


def asked_for(test):
    """The names that a condition makes sure of: `hasattr(os, "fork")`, or another platform."""
    if "win32" in ast.unparse(test) and "!=" in ast.unparse(test):
        return EVERYTHING
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    return frozenset(
        f"{ast.unparse(call.args[0])}.{call.args[1].value}"
        for call in calls
        if ast.unparse(call.func) == "hasattr" and isinstance(call.args[1], ast.Constant)
    )


def test_the_package_asks_for_nothing_that_windows_has_not():
    found = {file.name: complaints(file.read_text(encoding="utf-8")) for file in SOURCES}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("import fcntl", 1),
        ("from os import fork", 1),
        ("import os\npid = os.fork()", 1),
        ("import signal\nsignal.signal(signal.SIGKILL, print)", 1),
        ("n = os.getuid() if hasattr(os, 'getuid') else 1", 0),
        ("n = 1 if hasattr(os, 'getuid') else os.getuid()", 1),
        ("if hasattr(os, 'fork'):\n    os.getuid()", 1),
        ("def f():\n    if sys.platform == 'win32':\n        return\n    os.getuid()", 0),
        ("def f():\n    os.getuid()\n    if sys.platform == 'win32':\n        return", 1),
        ("if sys.platform != 'win32':\n    import fcntl", 0),
        ("open('/tmp/x')", 1),
        ("multiprocessing.get_context('fork')", 1),
        ("multiprocessing.get_context('spawn')", 0),
        ("subprocess.run(x, preexec_fn=f)", 1),
    ],
)
def test_the_check_can_fail(source, number):
    assert len(complaints(source)) == number

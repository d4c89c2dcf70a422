"""Runs one command and kills it when its owner, the parent process, dies.

Runs as a separate script (standard library only, so that it starts in milliseconds)::

    guard.py CONTROL_FD DIRECTORY_TO_REMOVE COMMAND...

The guard prints the command's process id on stdout, then watches three things: the control pipe
(``T``: send SIGTERM, ``K``: send SIGKILL, end of file: the owner has ended), its parent's id (a
forked child of the owner may hold the pipe open), and the command. When the owner has ended, the
guard kills the command and removes the directory, if one was named. The exit code is the command's,
or 128 + the signal.

If the guard itself is killed, the kernel kills the command (PR_SET_PDEATHSIG on Linux). That signal
follows the thread that forked, so an owner with several threads cannot use it directly; the guard
has one thread.
"""

import ctypes
import os
import select
import shutil
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_S = 0.5


def _start(command: list[str]) -> int:
    guard = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # the guard died before the line above
            os._exit(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(2, 1)  # stdout is the guard's channel; the command writes only to the log
        os.closerange(3, 1024)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _watch(pid: int, control: int, wake: int, parent: int) -> int | None:
    """Waits for the command's exit code; None if the owner ends first."""
    while True:
        readable, _, _ = select.select([control, wake], [], [], _PARENT_CHECK_S)
        if wake in readable:
            os.read(wake, 64)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return _exit_code(status)
        if os.getppid() != parent:
            return None
        if control in readable:
            commands = os.read(control, 64)
            if not commands:
                return None
            for command in commands:
                os.kill(pid, signal.SIGKILL if command == ord("K") else signal.SIGTERM)


def main(arguments: list[str]) -> int:
    """Runs the command and returns its exit code; ``arguments`` are those of the script."""
    control, remove, command = int(arguments[0]), arguments[1], arguments[2:]
    parent = os.getppid()
    wake, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # only the owner decides
    pid = _start(command)
    os.write(1, f"{pid}\n".encode())
    os.close(1)
    code = _watch(pid, control, wake, parent)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        code = _exit_code(status)
        if remove:
            shutil.rmtree(remove, ignore_errors=True)
            try:
                os.rmdir(os.path.dirname(remove))
            except OSError:
                return code  # another node's directory is still inside
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

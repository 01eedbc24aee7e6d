#!/usr/bin/env python3
"""Starts a program where there is neither /proc nor /sys: bare.py [--read-only] PROGRAM ARGUMENTS...

With --read-only, no file of the root can be written.
Exit status 77: that takes root which may mount file systems.
"""
import os
import subprocess
import sys

READ_ONLY = sys.argv[1] == "--read-only"
ROOT = "mount -o remount,bind,ro / && " if READ_ONLY else ""
BARE = ["unshare", "--mount", "sh", "-c", ROOT + "mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec \"$@\"", "sh"]

try:
    can_mount = subprocess.run([*BARE, "true"], capture_output=True).returncode == 0
except FileNotFoundError:
    can_mount = False
if not can_mount:
    print("skipped: needs root that may mount file systems")
    sys.exit(77)
os.execvp(BARE[0], [*BARE, *sys.argv[1 + READ_ONLY:]])

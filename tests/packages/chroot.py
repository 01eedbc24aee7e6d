#!/usr/bin/env python3
"""Installs the Debian packages in a bare Debian 12, uses them, and purges them: chroot.py FOLDER_OF_PACKAGES

Needs root and debootstrap; skipped with one sentence without them. The system is made anew each time from the package sources of
this one, in a temporary folder that is removed.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PACKAGES = ("libcollage0", "libcollage-dev", "collage")
PROGRAM = pathlib.Path(__file__).resolve().parent / "program.c"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


class Bare:
    """A bare system in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm"],
                               capture_output=True, text=True, check=False)
        if not found.stdout.strip():
            skip("no package source here has Debian 12 (bookworm)")
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", folder,
                        found.stdout.splitlines()[0]], check=True, stdout=subprocess.DEVNULL)
        (folder / "etc/apt/sources.list").unlink(missing_ok=True)
        for path in (*pathlib.Path("/etc/apt").glob("sources.list*"), pathlib.Path("/etc/apt/apt.conf.d"),
                     pathlib.Path("/usr/share/keyrings"), pathlib.Path("/etc/ssl/certs"), pathlib.Path("/etc/resolv.conf"),
                     pathlib.Path("/etc/hosts")):
            if path.exists():
                subprocess.run(["cp", "-a", "--dereference" if path.is_file() else "--", path, (folder / path.relative_to("/")).parent],
                               check=True)

    def run(self, *words: str, **options) -> str:
        """Runs a command inside; returns what it prints, and ends the test if it fails."""
        clean = {"HOME": "/root", "PATH": PATH, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        proxies = {k: v for k, v in os.environ.items() if k.lower() in ("http_proxy", "https_proxy", "no_proxy")}
        done = subprocess.run(["chroot", self.folder, *words], env={**clean, **proxies}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **options)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)} -> {done.returncode}\n{done.stdout}")
        return done.stdout

    def files(self) -> set[str]:
        """All files and folders but those of apt and dpkg, of caches, of the kernel and of the user."""
        left_out = {"var/lib/apt", "var/lib/dpkg", "var/cache", "var/log", "root", "tmp", "proc", "dev", "packages", "etc/ld.so.cache"}
        found = set()
        for name, folders, files in os.walk(self.folder):
            inside = pathlib.Path(name).relative_to(self.folder)
            folders[:] = [f for f in folders if str(inside / f) not in left_out]
            found |= {str(inside / f) for f in (*folders, *files)} - left_out
        return found


@contextlib.contextmanager
def new_folder():
    """A temporary folder with /proc mounted in its system. It is removed only once nothing is mounted there."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="collage-bare-", dir="/var/tmp"))
    system = folder / "system"
    try:
        yield system
    finally:
        if os.path.ismount(system / "proc"):
            subprocess.run(["umount", system / "proc"], check=False)
        if not os.path.ismount(system / "proc"):
            shutil.rmtree(folder)


def check_lintian(packages: list[pathlib.Path]) -> None:
    if shutil.which("lintian") is None:
        print("not checked by lintian, which is not installed")
        return
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "none", *packages], capture_output=True, text=True, check=True)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E: ")]
    if errors:
        sys.exit("lintian found errors:\n" + "\n".join(errors))


def use(bare: Bare) -> None:
    """What a user does with the packages."""
    told = bare.run("collage", "--version", "--verbose")
    backends = bare.run("collage", "backends")
    for name in ("onednn", "eigen", "stacked", "jit", "portable", "openblas"):
        if not any(line.startswith(f"{name} ") and line.endswith("  available") for line in backends.splitlines()):
            sys.exit(f"the backend {name} is not available:\n{backends}\n{told}")
    bare.run("collage", "tune", "zoo:bert-paper", "--plan", "/root/plan.json", "--budget", "2", "--regions", "0", "--quiet")
    bare.run("collage", "run", "zoo:bert-paper", "--plan", "/root/plan.json", "--trace", "/root/trace.json", "--quiet")
    shutil.copy(PROGRAM, bare.folder / "root")
    bare.run("sh", "-c", "cc -Wall -Wextra -Werror /root/program.c -o /root/program $(pkg-config --cflags --libs collage)")
    bare.run("/root/program", "/root/of_c.json")
    for trace in ("trace.json", "of_c.json"):
        if not json.loads((bare.folder / "root" / trace).read_text())["traceEvents"]:
            sys.exit(f"{trace} has no events")
    libraries = bare.run("sh", "-c", "ldd /usr/bin/collage /usr/lib/*/libcollage.so.0")
    if "not found" in libraries or "/collage/libdnnl.so.3" not in libraries:
        sys.exit(f"libraries are not found where they should be:\n{libraries}")
    bare.run("sh", "-c", "test -s /usr/share/man/man1/collage.1.gz || grep -q path-exclude /etc/dpkg/dpkg.cfg.d/*")


def main() -> None:
    packages = sorted(pathlib.Path(sys.argv[1]).glob("*.deb"))
    if {p.name.split("_")[0] for p in packages} != set(PACKAGES):
        sys.exit(f"{sys.argv[1]} has not the packages {', '.join(PACKAGES)}")
    check_lintian(packages)
    if os.geteuid() != 0:
        skip("installing in a bare system needs root")
    if shutil.which("debootstrap") is None:
        skip("debootstrap is not installed")
    with new_folder() as folder:
        bare = Bare(folder)  # with the devices that programs need
        subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
        bare.run("apt-get", "-q", "update")
        bare.run("apt-get", "-q", "install", "-y", "--no-install-recommends", "gcc", "libc6-dev", "pkg-config", "libopenblas0-openmp")
        (folder / "packages").mkdir()
        for p in packages:
            shutil.copy(p, folder / "packages")
        inside = [f"/packages/{p.name}" for p in packages]
        # Libraries that they need are there first, so that purging can be compared.
        needs = bare.run("apt-get", "-q", "install", "-s", "--no-install-recommends", *inside)
        others = [line.split()[1] for line in needs.splitlines() if line.startswith("Inst ")]
        others = [o for o in others if o not in PACKAGES]
        if others:
            bare.run("apt-get", "-q", "install", "-y", "--no-install-recommends", *others)
        before = bare.files()
        bare.run("apt-get", "-q", "install", "-y", "--no-install-recommends", *inside)
        use(bare)
        bare.run("apt-get", "-q", "purge", "-y", *PACKAGES)
        left = sorted(bare.files() - before)
        if left:
            sys.exit("purging leaves:\n" + "\n".join(left))
    print(f"installed, used and purged: {', '.join(p.name for p in packages)}")


if __name__ == "__main__":
    main()

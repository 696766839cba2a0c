"""The controller's image, built from the Dockerfile by buildah, which needs no daemon, and run as a kubelet would.

Its bases come from the registries that the Dockerfile names. Where those cannot be reached, stand-ins are put together
from Debian's packages: for the result those that distroless builds its python3-debian12 of, and nothing else; for the
build Debian's own Python 3.11 and pip in place of one that was compiled for python:3.11-slim-bookworm.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from needed_programs import BUILDAH

PACKAGES: Final = Path(__file__).parents[2] / "components"
DOCKERFILE: Final = PACKAGES / "kueue_fleet/controller/image/Dockerfile"
IGNORED: Final = DOCKERFILE.with_name("Dockerfile.dockerignore")
LONGEST_SECONDS: Final = 300.0
"""That one step of a build takes."""
# As in distroless' own python3 and cc images for Debian 12.
RESULT_PACKAGES: Final = (
    "base-files", "netbase", "tzdata", "ca-certificates", "libc6", "libssl3", "libgcc-s1", "libgomp1", "libstdc++6",
    "libbz2-1.0", "libdb5.3", "libexpat1", "liblzma5", "libsqlite3-0", "libuuid1", "libncursesw6", "libtinfo6",
    "python3-distutils", "zlib1g", "libcom-err2", "libcrypt1", "libgssapi-krb5-2", "libk5crypto3", "libkeyutils1",
    "libkrb5-3", "libkrb5support0", "libnsl2", "libreadline8", "libtirpc3", "libffi8", "libpython3.11-minimal",
    "libpython3.11-stdlib", "python3.11-minimal",
)  # fmt: skip
BUILD_PACKAGES: Final = (
    *RESULT_PACKAGES, "dash", "coreutils", "libacl1", "libattr1", "libselinux1", "libpcre2-8-0", "libgmp10",
    "python3-pip", "python3-setuptools", "python3-pkg-resources", "python3-wheel", "python3-lib2to3",
)  # fmt: skip
USERS: Final = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
# What this machine's own pip goes by: its certificates, and its settings where it has any.
PIP_SETTINGS: Final = (Path("/etc/ssl/certs"), Path("/etc/pip.conf"))


class ImageError(Exception):
    """The image cannot be built here; the message says what is missing."""


@dataclass(frozen=True)
class BuiltImage:
    """An image, unpacked."""

    files: Path
    """Its root directory."""
    config: Mapping[str, Any]
    """What the image says of running it: User, Env, Entrypoint."""

    def start(self, arguments: Sequence[str], mounts: Mapping[str, Path], log: Path) -> subprocess.Popen[bytes]:
        """Its entry point as its user, without capabilities, with nothing that it may write to.

        `mounts`: folders of this machine by the place where they are seen, read-only too.
        """
        root = str(self.files)
        places = {root: root, **{str(source): f"{root}{place}" for place, source in mounts.items()}}
        for place in places.values():
            Path(place).mkdir(parents=True, exist_ok=True)
        mount = [f"mount --bind {source} {place}" for source, place in places.items()]
        mount += [f"mount --options remount,bind,ro {place}" for place in places.values()]
        # The programs of this machine by their paths: PATH is the image's.
        drop = [_path("setpriv"), "--no-new-privs", _path("chroot"), f"--userspec={self.config['User']}", root]
        command = [_path("env"), "-i", *self.config["Env"], *drop, *self.config["Entrypoint"], *arguments]
        script = " && ".join([*mount, 'exec "$@"'])
        with log.open("wb") as out:
            return subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", *command], stdout=out, stderr=out)


def _path(name: str) -> str:
    result = shutil.which(name)
    if result is None:
        raise ImageError(f"there is no {name} on PATH")
    return result


class Buildah:
    """Images in a folder of their own, which is all that is left behind."""

    def __init__(self, folder: Path) -> None:
        self._program = BUILDAH.path()
        self._options = ("--root", str(folder / "storage"), "--runroot", str(folder / "run"), "--storage-driver", "vfs")

    def __call__(self, *arguments: str) -> str:
        """What it printed. Raises ImageError."""
        command = [self._program, *self._options, *arguments]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            raise ImageError(f"buildah {arguments[0]}: not done after {LONGEST_SECONDS:.0f} s") from None
        if result.returncode:
            raise ImageError(f"buildah {arguments[0]}: {(result.stdout + result.stderr)[-3000:]}")
        return result.stdout.strip()


def named_bases() -> dict[str, str]:
    """The bases that the Dockerfile names."""
    return dict(re.findall(r"^ARG (\w+_BASE)=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE))


def build_image(folder: Path) -> BuiltImage:
    """The image, in `folder`. Raises ImageError."""
    buildah = Buildah(folder)
    bases = named_bases()
    try:
        for base in bases.values():
            buildah("pull", "--quiet", base)
    except ImageError as error:
        print(f"built on stand-ins of the bases, since these cannot be had: {error}", file=sys.stderr)
        bases = stand_ins(buildah, folder)
    arguments = [part for name, base in bases.items() for part in ("--build-arg", f"{name}={base}")]
    volumes = [part for path in PIP_SETTINGS if path.exists() for part in ("--volume", f"{path}:{path}:ro")]
    files = ("--file", str(DOCKERFILE), "--ignorefile", str(IGNORED))
    options = ("--isolation", "chroot", "--pull-never", *files, *arguments, *volumes)
    buildah("bud", *options, "--tag", "controller", str(PACKAGES))
    container = buildah("from", "--pull-never", "controller")
    described = json.loads(buildah("inspect", "--type", "image", "controller"))
    return BuiltImage(Path(buildah("mount", container)), described["OCIv1"]["config"])


def stand_ins(buildah: Buildah, folder: Path) -> dict[str, str]:
    """Images like the bases that the Dockerfile names, by argument. Raises ImageError."""
    packages = folder / "packages"
    packages.mkdir()
    command = [_path("apt-get"), "download", "--quiet", *BUILD_PACKAGES]
    result = subprocess.run(command, cwd=packages, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ImageError(f"the packages of the stand-ins: {result.stderr[-1000:]}")
    objects = {}
    for argument, names in (("BUILD_BASE", BUILD_PACKAGES), ("RESULT_BASE", RESULT_PACKAGES)):
        root = folder / argument
        (root / "tmp").mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        for name in names:
            [file] = packages.glob(f"{name}_*.deb")
            subprocess.run(["dpkg-deb", "--extract", str(file), str(root)], check=True)
        links = {"usr/bin/python": "python3.11", "usr/bin/python3": "python3.11"}
        if "dash" in names:
            links["bin/sh"] = "dash"
        for place, target in links.items():
            (root / place).unlink(missing_ok=True)
            (root / place).symlink_to(target)
        (root / "etc/passwd").write_text(USERS)
        container = buildah("from", "scratch")
        buildah("add", "--quiet", container, str(root), "/")
        objects[argument] = f"localhost/stand-in-{argument.lower().replace('_', '-')}"
        buildah("commit", "--quiet", container, objects[argument])
        shutil.rmtree(root)
    return objects

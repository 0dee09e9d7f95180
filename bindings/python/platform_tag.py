"""The platform tag that a wheel with these ELF files may carry:  platform_tag.py FILE...

manylinux_2_N_x86_64 for the newest glibc symbol version that any of them needs, or for the first glibc that is commonly
accompanied by the libstdc++ they need, whichever is newer; linux_x86_64 if that is not known. Needs readelf.
"""

import platform
import re
import subprocess
import sys

# libstdc++'s newest symbols -> N of the first manylinux_2_N policy that has them (auditwheel's policies).
GLIBCXX = {(3, 4, 19): 17, (3, 4, 24): 28, (3, 4, 28): 31, (3, 4, 29): 34, (3, 4, 30): 35, (3, 4, 33): 39}
OLDEST = 17


def needed(text):
    """readelf -V's version needs: kind -> newest version, as tuples."""
    newest = {}
    needs = text.partition("Version needs section")[2]
    for kind, version in re.findall(r"Name: (GLIBC|GLIBCXX)_([0-9.]+)", needs):
        newest[kind] = max(newest.get(kind, ()), tuple(map(int, version.split("."))))
    return newest


def tag(texts, machine="x86_64"):
    minor = OLDEST
    for text in texts:
        versions = needed(text)
        major, *rest = versions.get("GLIBC", (2, OLDEST))
        if major != 2:
            return f"linux_{machine}"
        minor = max(minor, rest[0])
        library = versions.get("GLIBCXX")
        if library:
            policies = [policy for version, policy in sorted(GLIBCXX.items()) if version >= library]
            if not policies:
                return f"linux_{machine}"
            minor = max(minor, policies[0])
    return f"manylinux_2_{minor}_{machine}"


if __name__ == "__main__":
    print(tag([subprocess.run(["readelf", "-V", "-W", file], check=True, capture_output=True, text=True,
                              env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout for file in sys.argv[1:]],
              platform.machine()))

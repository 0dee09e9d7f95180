"""Only what pyproject.toml cannot say: the wheel holds programs, so its tag names a platform, but no Python version.
tools/build_wheel.sh lays the library and the tools into gemvjit/ beside the sources, and names the platform."""

import os

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Platform(Distribution):
    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", os.environ.get("GEMVJIT_WHEEL_PLATFORM") or super().get_tag()[2]


setup(distclass=Platform, cmdclass={"bdist_wheel": PlatformWheel})

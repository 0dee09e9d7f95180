# Debian packages by `cpack -G DEB` in the build folder (docs/packaging.md): one for each component. Preset `deb` builds
# them for /usr, where the libraries lie in the architecture's own folder.
set(GEMVJIT_PACKAGE_MAINTAINER "gemvjit maintainers <maintainers@gemvjit.invalid>"
    CACHE STRING "Maintainer named in the packages: Name <address>")
set(GEMVJIT_PACKAGE_REVISION 1 CACHE STRING "Revision of the packages: the 1 in 0.1.0-1")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gemvjit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${GEMVJIT_PACKAGE_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development)
if(GEMVJIT_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian_files.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${GEMVJIT_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps NO_CACHE)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(version ${PROJECT_VERSION}-${GEMVJIT_PACKAGE_REVISION})
set(library libgemvjit${PROJECT_VERSION_MAJOR})  # changes with the soname: two can be installed together

# CPack would write that a program needs just the version that it was built with; a later one will do, too.
set(control ${CMAKE_BINARY_DIR}/package/debian)
file(WRITE ${control}/shlibs "libgemvjit ${PROJECT_VERSION_MAJOR} ${library} (>= ${PROJECT_VERSION})\n")
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)

set(about "gemvjit computes linear layers with few tokens (NVFP4 or BF16 weights, M up to
32) as GEMVs that are compiled at warmup with NVRTC, cached on disk and
launched through the driver API. Nothing of CUDA is linked: libcuda and
libnvrtc are opened when first used.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libcuda1, libssl3")  # opened with dlopen; signatures are by libcrypto
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "decode linear layers on NVIDIA GPUs - shared library
${about}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgemvjit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${version})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "decode linear layers on NVIDIA GPUs - development files
${about}

This package has the header, the static library and what CMake and pkg-config
need.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME gemvjit-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "libcuda1, libssl3")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "decode linear layers on NVIDIA GPUs - tools
${about}

This package has gemvjit-warmup, gemvjit-cache, gemvjit-verify, gemvjit-bench
and gemvjit-tune, and a copy of the tuning tables.")

include(CPack)

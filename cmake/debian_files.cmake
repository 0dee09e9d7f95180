# What Debian wants of each package beside what `cmake --install` puts into it; run by cpack between installing and
# packing. A copyright and compressed changelogs in a folder of the package's name, which take the place of the common
# share/doc/gemvjit (two packages must not hold one file), and compressed manual pages. gzip -n: no time stamps, so that
# two builds of one source give the same bytes (SOURCE_DATE_EPOCH for the changelog's date).
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
get_filename_component(source ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

function(gemvjit_compress)
  if(ARGN)
    execute_process(COMMAND gzip -9nf ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  file(REMOVE_RECURSE ${share}/doc/gemvjit)

  set(doc ${share}/doc/${package})
  file(WRITE ${doc}/copyright
       "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gemvjit

Files: *
Copyright: 2026 the gemvjit authors
License: Apache-2.0
 On Debian systems, the complete text of the Apache License, Version 2.0, can be
 found in /usr/share/common-licenses/Apache-2.0.
")
  # Of these headers there is compiled code inside; Debian's packages of them say whose they are.
  foreach(origin libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev)
    if(EXISTS /usr/share/doc/${origin}/copyright)
      configure_file(/usr/share/doc/${origin}/copyright ${doc}/third-party/${origin}.copyright COPYONLY)
    endif()
  endforeach()
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${doc}/changelog.Debian "gemvjit (${version}) unstable; urgency=medium

  * What changed is in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  configure_file(${source}/CHANGELOG.md ${doc}/changelog COPYONLY)
  file(GLOB pages ${share}/man/man*/*.[1-9])
  gemvjit_compress(${doc}/changelog.Debian ${doc}/changelog ${pages})
  file(GLOB_RECURSE written ${doc}/* ${share}/man/*)  # no folders
  file(CHMOD ${written} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(GLOB_RECURSE folders LIST_DIRECTORIES ON ${CPACK_TEMPORARY_DIRECTORY}/${component}/*)
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY ${folder})
      file(CHMOD ${folder} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                       WORLD_EXECUTE)
    endif()
  endforeach()
endforeach()

# What `cmake --install` puts where (docs/packaging.md): component `runtime` the shared library, `development` what a
# program is built with, `tools` the tuning tables (and the tools, by tools/cli_pages.cmake). Nothing installed names
# the prefix that was configured, so that a tree may be moved as a whole.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gemvjit)
install(
  TARGETS gemvjit
  EXPORT gemvjit
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT runtime
          NAMELINK_COMPONENT development)
install(TARGETS gemvjit_static EXPORT gemvjit ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES include/gemvjit/gemvjit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gemvjit COMPONENT development)

# A copy of the tables that are built in: to read, and to start from where GEMVJIT_TUNING_DIR is to replace one.
list(TRANSFORM tuning_tables PREPEND tuning_tables/ OUTPUT_VARIABLE table_files)
install(FILES ${table_files} tuning_tables/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/gemvjit/tuning_tables
        COMPONENT tools)
foreach(component runtime development tools)  # each may be installed alone
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endforeach()

# find_package(gemvjit)
install(EXPORT gemvjit NAMESPACE gemvjit:: FILE gemvjitTargets.cmake DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/gemvjitConfig.cmake.in ${CMAKE_BINARY_DIR}/package/gemvjitConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/gemvjitConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_BINARY_DIR}/package/gemvjitConfig.cmake ${CMAKE_BINARY_DIR}/package/gemvjitConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# pkg-config: folders are said from where the .pc file lies. An absolute one, as some distributions configure, stays.
function(gemvjit_pc_folder variable folder)
  if(IS_ABSOLUTE ${folder})
    set(${variable} ${folder} PARENT_SCOPE)
  else()
    set(${variable} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()
gemvjit_pc_folder(PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
gemvjit_pc_folder(PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(PC_PREFIX "\${pcfiledir}/${up}")
endif()
# The static library is C++ inside; nothing of that shows, but a C linker has to be told of its runtime.
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE PC_DL)
set(PC_LIBS_PRIVATE "-lstdc++ -lm ${CMAKE_THREAD_LIBS_INIT} -lpthread ${PC_DL}")
string(REGEX REPLACE " +" " " PC_LIBS_PRIVATE ${PC_LIBS_PRIVATE})
configure_file(cmake/gemvjit.pc.in ${CMAKE_BINARY_DIR}/package/gemvjit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/gemvjit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

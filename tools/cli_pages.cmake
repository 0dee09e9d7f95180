# Manual pages and completions of bash, zsh and fish, made by each tool from the definitions that parse its command line,
# and what of the tools is installed: component "tools".
include(GNUInstallDirs)
set(share ${CMAKE_BINARY_DIR}/share)
set(dump_cli ${CMAKE_CURRENT_SOURCE_DIR}/dump_cli.cmake)
set(cli_pages "")

# gemvjit_cli_page(<tool> <format> <file below share> <folder to install to>)
function(gemvjit_cli_page tool format file destination)
  add_custom_command(
    OUTPUT ${share}/${file}
    COMMAND ${CMAKE_COMMAND} -DTOOL=$<TARGET_FILE:${tool}> -DFORMAT=${format} -DOUT=${share}/${file} -P ${dump_cli}
    DEPENDS ${tool} ${dump_cli}
    VERBATIM)
  set(cli_pages ${cli_pages} ${share}/${file} PARENT_SCOPE)
  install(FILES ${share}/${file} DESTINATION ${destination} COMPONENT tools)
endfunction()

set(tools gemvjit-bench gemvjit-cache gemvjit-tune gemvjit-verify gemvjit-warmup)
foreach(tool IN LISTS tools)
  gemvjit_cli_page(${tool} man man/man1/${tool}.1 ${CMAKE_INSTALL_MANDIR}/man1)
  gemvjit_cli_page(${tool} bash bash-completion/completions/${tool}
                   ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  gemvjit_cli_page(${tool} zsh zsh/site-functions/_${tool} ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  gemvjit_cli_page(${tool} fish fish/vendor_completions.d/${tool}.fish
                   ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
gemvjit_cli_page(gemvjit-cache config-man man/man5/gemvjit-config.5 ${CMAKE_INSTALL_MANDIR}/man5)
add_custom_target(gemvjit_cli_pages ALL DEPENDS ${cli_pages})
install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

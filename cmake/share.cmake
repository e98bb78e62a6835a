# The manual page, whose tables the program's own table of options gives, and the completions: into share/ of the build, laid
# out as they are installed.
set(share ${PROJECT_BINARY_DIR}/share)
set(man ${share}/man/man8)
set(bash ${share}/bash-completion/completions)
set(zsh ${share}/zsh/vendor-completions)
set(fish ${share}/fish/vendor_completions.d)
file(MAKE_DIRECTORY ${man} ${bash} ${zsh} ${fish})

add_executable(manual src/manual/main.cc)
target_link_libraries(manual PRIVATE sidetrack_flags libsidetrack)

add_custom_command(OUTPUT ${man}/sidetrack.8 DEPENDS manual docs/sidetrack.8.in VERBATIM
  COMMAND manual < ${PROJECT_SOURCE_DIR}/docs/sidetrack.8.in > ${man}/sidetrack.8)
add_custom_target(share ALL DEPENDS ${man}/sidetrack.8)
configure_file(completions/sidetrack.bash ${bash}/sidetrack COPYONLY)
configure_file(completions/_sidetrack ${zsh}/_sidetrack COPYONLY)
configure_file(completions/sidetrack.fish ${fish}/sidetrack.fish COPYONLY)

# The other names of the program. bash and fish look for a file of the name that is typed; zsh's says the names inside.
file(WRITE ${man}/istio-iptables.8 ".so man8/sidetrack.8\n")
file(WRITE ${man}/istio-clean-iptables.8 ".so man8/sidetrack.8\n")
file(CREATE_LINK sidetrack ${bash}/istio-iptables SYMBOLIC)
file(CREATE_LINK sidetrack.fish ${fish}/istio-iptables.fish SYMBOLIC)

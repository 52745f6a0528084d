# SPDX-License-Identifier: GPL-2.0-or-later
# What a site's packages hold, a component each, and how CPack makes Debian's of it; RPM's are made by site/rpm. What is theirs
# alone lies where it is used; `cmake --install` without a component leaves it out. site/README.md says what is in them.
set(COMPONENTS node slurm server cli)
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/site/debian)
set(command ${CMAKE_CURRENT_SOURCE_DIR}/../packages/joulemark)

file(STRINGS ${SLURM_INCLUDE_DIR}/slurm/slurm_version.h SLURM_RELEASE
     REGEX "define SLURM_VERSION_NUMBER 0x")
string(REGEX REPLACE ".*0x(..)(..).." "0x\\1;0x\\2" SLURM_RELEASE "${SLURM_RELEASE}")
list(GET SLURM_RELEASE 0 year)
list(GET SLURM_RELEASE 1 month)
math(EXPR year "${year}")
math(EXPR next "100 + ${month} + 1") # of three digits, the first too many
math(EXPR month "100 + ${month}")
string(SUBSTRING ${month} 1 2 month)
string(SUBSTRING ${next} 1 2 next)
set(SLURM_RELEASE ${year}.${month})

set(JM_PACKAGE_FORMAT deb CACHE STRING "deb or rpm: whose places and documents the packages have")
set(JM_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Python's modules, below the prefix")
set(JM_REVISION 1 CACHE STRING "of the packages of one version")
set(JM_CONTACT "" CACHE STRING "who makes the packages: NAME <MAIL>")
set(revision 0site${JM_REVISION}) # whatever Debian itself may have of this version is later

# jm_pack(COMPONENT WHAT... DESTINATION FOLDER...): as install(), for that package alone
function(jm_pack component)
  install(${ARGN} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

jm_pack(node FILES ${CMAKE_CURRENT_BINARY_DIR}/joulemarkd.service DESTINATION lib/systemd/system)
jm_pack(node FILES site/joulemark.yaml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/slurm)
jm_pack(node FILES site/joulemark.rules DESTINATION lib/udev/rules.d RENAME 70-joulemark.rules)
if(JM_PACKAGE_FORMAT STREQUAL deb)
  set(sysusers ${debian}/node/joulemark.sysusers)
  # PluginDir names Slurm's own folder, too, in one slurm.conf for all architectures
  set(link ${CMAKE_CURRENT_BINARY_DIR}/slurm-wlm)
  file(CREATE_LINK ../${CMAKE_LIBRARY_ARCHITECTURE}/slurm-wlm ${link} SYMBOLIC)
  jm_pack(slurm FILES ${link} DESTINATION ${JM_PLUGIN_DIR})
else()
  set(sysusers site/joulemark.sysusers)
endif()
jm_pack(node FILES ${sysusers} DESTINATION lib/sysusers.d RENAME joulemark.conf)
jm_pack(node FILES site/joulemark.tmpfiles DESTINATION lib/tmpfiles.d RENAME joulemark.conf)
jm_pack(server FILES ${CMAKE_CURRENT_BINARY_DIR}/joulemark-gateway.service
                     site/joulemark-receive.service DESTINATION lib/systemd/system)
jm_pack(server FILES site/gateway.yaml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/joulemark)
jm_pack(server FILES site/mosquitto.acl DESTINATION share/doc/joulemark-server/examples)
jm_pack(cli PROGRAMS site/joulemark DESTINATION bin)
install(DIRECTORY ${command}/src/joulemark DESTINATION ${JM_PYTHON_DIR}
        COMPONENT cli EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)

# man pages and completions; Debian's changelogs and licences, which a spec file has words for
set(documents ${CMAKE_CURRENT_BINARY_DIR}/documents)
add_custom_target(documents
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/site/documents ${documents} ${PROJECT_VERSION}
          $<TARGET_FILE:joulemarkd> $<TARGET_FILE:joulemarkctl>
  VERBATIM)
if(JM_PACKAGE_FORMAT STREQUAL deb)
  add_custom_command(
    TARGET documents POST_BUILD
    COMMAND ${debian}/documents ${documents} ${SLURM_RELEASE} ${PROJECT_VERSION}-${revision}
            "${JM_CONTACT}"
    VERBATIM)
endif()
foreach(component ${COMPONENTS})
  jm_pack(${component} DIRECTORY ${documents}/${component}/ DESTINATION .)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL ${COMPONENTS})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "${JM_CONTACT}")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SOURCE joulemark)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same "(= ${PROJECT_VERSION}-${revision})")

# jm_control(COMPONENT FILE...): scripts of dpkg's, and its list of what a site edits
function(jm_control component)
  string(TOUPPER ${component} COMPONENT)
  list(TRANSFORM ARGN PREPEND ${debian}/${component}/)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_CONTROL_EXTRA ${ARGN} PARENT_SCOPE)
endfunction()

set(CPACK_DEBIAN_NODE_PACKAGE_NAME joulemark-node)
set(CPACK_DEBIAN_NODE_DESCRIPTION "ledger of the energy of a Slurm node's jobs
joulemarkd reads a node's power meters and charges the energy to Slurm's
jobs and steps; joulemarkctl asks it. With the instruments of all meters.")
set(CPACK_DEBIAN_NODE_PACKAGE_DEPENDS "procps, systemd | systemd-standalone-sysusers, \
systemd | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_NODE_PACKAGE_RECOMMENDS joulemark-slurm)
jm_control(node conffiles postinst postrm prerm)

set(CPACK_DEBIAN_SLURM_PACKAGE_NAME joulemark-slurm-${SLURM_RELEASE})
set(CPACK_DEBIAN_SLURM_DESCRIPTION "energy of jobs in Slurm ${SLURM_RELEASE}
The SPANK plugin and the energy plugin through which joulemarkd hears of jobs
and sacct shows their joules. Slurm takes plugins of its own release alone.")
set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "slurm-wlm-basic-plugins (>= ${SLURM_RELEASE}), \
slurm-wlm-basic-plugins (<< ${year}.${next}~)")
set(CPACK_DEBIAN_SLURM_PACKAGE_RECOMMENDS joulemark-node)
foreach(field PROVIDES CONFLICTS REPLACES)
  set(CPACK_DEBIAN_SLURM_PACKAGE_${field} joulemark-slurm) # that of another release
endforeach()

set(CPACK_DEBIAN_SERVER_PACKAGE_NAME joulemark-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SERVER_DESCRIPTION "records of Slurm jobs' energy, merged for a whole cluster
The epilog by which slurmctld has jobs' records merged into the store, and the
services that receive nodes' records and read meters for them.")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "joulemark-cli ${same}, joulemark-node ${same}")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "joulemark-slurm, python3-paho-mqtt")
jm_control(server conffiles postinst postrm prerm)

set(CPACK_DEBIAN_CLI_PACKAGE_NAME joulemark-cli)
set(CPACK_DEBIAN_CLI_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_CLI_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CLI_DESCRIPTION "accounting of Slurm jobs with their energy
The command joulemark: sacct with joules, reports, plots and exports, and
joulemark.regions, by which programs name what they measure.")
set(CPACK_DEBIAN_CLI_PACKAGE_DEPENDS "python3 (>= 3.9), python3-rich, python3-yaml")
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS python3-matplotlib)
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS
    "python3-h5py, python3-paho-mqtt, python3-psycopg2, python3-pymysql")
jm_control(cli postinst prerm)

include(CPack)

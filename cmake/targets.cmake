# One library per folder; warnings are errors for g++, the compiler that releases are built with.
set(sanitizer_flags -fsanitize=${LETHE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
function(lethe_warnings target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wshadow=local -Wno-missing-field-initializers)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  endif()
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()
function(lethe_flags target)
  lethe_warnings(${target})
  # A call that is bound when it is first made saves the vector registers, and what a copy has left in
  # them, to the thread's stack: nobody wipes that.
  target_link_options(${target} PUBLIC -Wl,-z,relro,-z,now)
  if(LETHE_SANITIZE)
    target_compile_options(${target} PUBLIC ${sanitizer_flags})
    target_link_options(${target} PUBLIC -fsanitize=${LETHE_SANITIZE})
    target_compile_definitions(${target} PUBLIC LETHE_SANITIZED=1)
    # What sanitizers put between two statements, and headers parsed before, make g++ 12 doubt what is right.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-error)
    endif()
  endif()
  if(LETHE_FUZZ)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# What many files include is parsed once: lethe_headers(OWNER PRIVATE HEADERS...), and lethe_headers(TARGET REUSE_FROM OWNER)
# where flags are alike. Only for tests, for what sees CAF, and under the thread sanitizer: what ships is read as it stands, and
# all that clang reads, so a file that forgot to include something is found. What some files define for the C library all do.
set(common_headers <algorithm> <array> <chrono> <cmath> <filesystem> <functional> <map> <memory> <memory_resource> <mutex>
  <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(common_definitions _FILE_OFFSET_BITS=64) # hiredis'
function(lethe_headers target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess) # ccache wants it
    target_precompile_headers(${target} ${ARGN})
  endif()
endfunction()

# lethe_library(NAME [link libraries...]): every .cpp of the current folder.
function(lethe_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(sources)
    add_library(${name} STATIC ${sources})
    lethe_flags(${name})
    target_link_libraries(${name} PUBLIC ${ARGN})
    if(LETHE_SANITIZE AND name STREQUAL "lethe_base")
      target_compile_definitions(${name} PUBLIC ${common_definitions})
      lethe_headers(${name} PRIVATE ${common_headers})
    elseif(LETHE_SANITIZE AND NOT name MATCHES "^lethe_(actors|simulation)$") # these have CAF's
      lethe_headers(${name} REUSE_FROM lethe_base)
    endif()
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARGN})
  endif()
endfunction()

# One library per folder; warnings are errors for g++, the compiler that releases are built with.
function(lethe_flags target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wshadow=local -Wno-missing-field-initializers)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  endif()
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  # A call that is bound when it is first made saves the vector registers, and what a copy has left in
  # them, to the thread's stack: nobody wipes that.
  target_link_options(${target} PUBLIC -Wl,-z,relro,-z,now)
  if(LETHE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${LETHE_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LETHE_SANITIZE})
    target_compile_definitions(${target} PUBLIC LETHE_SANITIZED=1)
    # What sanitizers put between two statements makes g++ 12 doubt values that were set.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(LETHE_FUZZ)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# lethe_library(NAME [link libraries...]): every .cpp of the current folder.
function(lethe_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(sources)
    add_library(${name} STATIC ${sources})
    lethe_flags(${name})
    target_link_libraries(${name} PUBLIC ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ARGN})
  endif()
endfunction()

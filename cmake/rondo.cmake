# Helpers that every folder's CMakeLists.txt uses. One target a folder: `rondo_<folder>`.

# rondo_library(<folder> SRCS a.cc b.cc DEPS rondo_base absl::status)
function(rondo_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(rondo_${name} STATIC ${ARG_SRCS})
  target_link_libraries(rondo_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# rondo_test(<name> SRCS x_test.cc DEPS rondo_config [THREADS] [WORKING_DIRECTORY dir] [ENV A=b])
# Links GoogleTest's main and registers the binary with ctest. THREADS: it exercises threads of ours, so it belongs to
# the target `thread_tests`, which is what TSan builds: the rest would only cost time there.
function(rondo_test name)
  cmake_parse_arguments(ARG "THREADS" "WORKING_DIRECTORY" "SRCS;DEPS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${ARG_WORKING_DIRECTORY})
  # `rondo sim` preloads its driver, and a preload comes before ASan's runtime, which would refuse to start.
  list(APPEND ARG_ENV ASAN_OPTIONS=verify_asan_link_order=0)
  # A skip is no pass. Matches at the end only, where nothing failed: to ctest a skip is more than a failure.
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 ENVIRONMENT "${ARG_ENV}" SKIP_REGULAR_EXPRESSION
    "\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]+\n)+$")
  if(ARG_THREADS)
    add_dependencies(thread_tests ${name})
    set_tests_properties(${name} PROPERTIES LABELS threads)
  endif()
endfunction()

# rondo_bench(<name> SRCS ... DEPS ...): a Google Benchmark program, built by the target `benchmarks` only.
function(rondo_bench name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark)
  add_dependencies(benchmarks ${name})
endfunction()

# rondo_fuzz(<name> SRCS x_fuzz.cc DEPS ... CORPUS dir): with RONDO_FUZZ (clang) a libFuzzer program;
# otherwise a plain program that replays the corpus as a test, so that no corpus entry can rot.
function(rondo_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  add_dependencies(fuzzers ${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  if(RONDO_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # -runs bounds the smoke; new inputs go to a scratch folder, never into the tree.
    add_test(NAME ${name}
             COMMAND sh -c "d=$(mktemp -d) && trap 'rm -rf $d' EXIT && $<TARGET_FILE:${name}> -runs=20000 -max_total_time=20 -timeout=10 $d ${ARG_CORPUS}")
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/fuzz/replay_main.cc)
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()

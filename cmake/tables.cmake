# Reads the tables: one row is one file. CMake runs again when a table changes.

# Names in the first column of rows "MACRO(name, ...": out receives them in order.
function(iso_table_names table macro out)
  set_property(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${table})
  file(STRINGS ${table} rows REGEX "^${macro}\\(")
  set(names "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^${macro}\\( *([a-z0-9_]+).*" "\\1" name "${row}")
    list(APPEND names ${name})
  endforeach()
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# Every operator's file, and the files of the room that are no operators.
function(iso_op_sources out)
  iso_table_names(ggml-style-ops/ops.def OP names)
  set(files ggml-style-ops/ops.c ggml-style-ops/fusions.c ggml-style-ops/cases.c
    ggml-style-ops/shape_rules.c)
  foreach(name IN LISTS names)
    list(APPEND files ggml-style-ops/${name}.c)
  endforeach()
  file(GLOB lane CONFIGURE_DEPENDS ggml-style-ops/lane/*.c)
  set(${out} ${files} ${lane} PARENT_SCOPE)
endfunction()

# KERNEL(op, form, isa, ...) -> backends/cpu/<isa folder>/<op>_<form>[_isa].c, with ISA flags.
function(iso_cpu_kernel_sources out)
  set(iso_flags_avx2 -mavx2 -mfma -mf16c)
  set(iso_flags_avx512 ${iso_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  set(iso_flags_vnni ${iso_flags_avx512} -mavx512vnni)
  if(ISO_SIMDE)
    set(iso_flags_avx512 ${iso_flags_avx2} -DISO_SIMDE_AVX512 -Wno-psabi)
    set(iso_flags_vnni ${iso_flags_avx512})
  endif()
  set(table backends/cpu/kernels.def)
  set_property(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${table})
  file(STRINGS ${table} rows REGEX "^KERNEL\\(")
  set(files "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^KERNEL\\( *([a-z0-9_]+), *([a-z0-9_]+), *([a-z0-9_]+),.*"
      "\\1;\\2;\\3" columns "${row}")
    list(GET columns 0 op)
    list(GET columns 1 form)
    list(GET columns 2 isa)
    if(isa STREQUAL "portable")
      list(APPEND files backends/cpu/portable/${op}_${form}.c)
    elseif(DEFINED iso_flags_${isa})
      set(file backends/cpu/x86/${op}_${form}_${isa}.c)
      if(iso_x86)
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${iso_flags_${isa}}")
        list(APPEND files ${file})
      endif()
    elseif(isa STREQUAL "neon" OR isa STREQUAL "dotprod")
      set(file backends/cpu/arm/${op}_${form}_${isa}.c)
      if(iso_arm)
        if(isa STREQUAL "dotprod")
          set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
            "-march=armv8.2-a+dotprod")
        endif()
        list(APPEND files ${file})
      endif()
    else()
      message(FATAL_ERROR "${table}: unknown isa ${isa}")
    endif()
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# The loops that bench sets kernels against, for one instruction set.
macro(iso_bench_loops isa)
  list(APPEND bench_sources apps/bench/bench_loops_${isa}.c)
  set_source_files_properties(apps/bench/bench_loops_${isa}.c PROPERTIES COMPILE_OPTIONS
    "${ARGN}")
endmacro()

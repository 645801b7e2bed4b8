# Cross build for 64-bit ARM with Debian's cross compiler; programs run under qemu's user mode.
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DISO_ARM_ROOT=DIR
# ISO_ARM_ROOT: where the libraries' arm64 packages are unpacked (./run test makes one). The C
# library and libgomp are the cross compiler's own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ISO_ARM_ROOT)

set(CMAKE_FIND_ROOT_PATH ${ISO_ARM_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR}
  ${ISO_ARM_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ISO_ARM_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ISO_ARM_ROOT})

// SPDX-License-Identifier: GPL-2.0-or-later
// Which code a program reaches, for scripts/mutate: a byte for each address of its code, in the file SIZE of the folder
// build/PRESET/reached, which is named by the program's size. It is not in /run: tests mount their own there. Without
// that folder nothing is noted. It is open before the sandbox is entered, and shared with the processes that the
// program makes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>

extern "C" char __executable_start[], etext[];

namespace {

char* reached = nullptr;

[[gnu::constructor]] void start() {
  struct stat program {};
  if (stat("/proc/self/exe", &program) != 0) return;
  const int file =
      open((REACHED_FOLDER "/" + std::to_string(program.st_size)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  const auto size = static_cast<std::size_t>(etext - __executable_start);
  if (ftruncate(file, static_cast<off_t>(size)) == 0) {
    void* const map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) reached = static_cast<char*>(map);
  }
  close(file);
}

}  // namespace

// g++ calls it where each block begins: -fsanitize-coverage=trace-pc.
extern "C" void __sanitizer_cov_trace_pc() {
  if (reached != nullptr) reached[static_cast<char*>(__builtin_return_address(0)) - __executable_start] = 1;
}

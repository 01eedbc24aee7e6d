// The program `collage`: reads the command line and runs one command. An error is printed as a sentence; the exit code
// is 2 for the user's mistakes and 1 for failures.
#include "backends.hpp"
#include "command_line.hpp"
#include "commands.hpp"
#include "signals.hpp"
#include "terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <collage/error.hpp>
#include <collage/place/worker.hpp>
#include <collage/run/waiting.hpp>

#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <string>

namespace {

/// Opens /dev/null for each standard stream that is closed. Otherwise the first file opened would take its descriptor,
/// and output would be written into that file.
void occupy_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != stream) return;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<collage::brief_waiting> beside_others;  // in workers, too: they measure how kernels will run
  if (collage::is_worker(argc, argv)) beside_others.emplace();
  if (collage::worker(program::backends(), argc, argv)) return 0;
  occupy_streams();
  std::signal(SIGPIPE, SIG_IGN);  // print() handles a closed pipe
  std::signal(SIGXFSZ, SIG_IGN);  // writing a file reports that it is too large
  program::handle_signals();
  try {
    const program::command_line line = program::parse(argc, argv);
    if (line.command == nullptr) return line.exit_code;
    if (line.computes) {
      collage::restart_waiting_briefly(argv);
      beside_others.emplace();
    }
    return line.command(line.given);
  } catch (const collage::error& e) {
    program::complain(e.what());
    if (e.kind() == collage::error_kind::cancelled && program::ending_signal() != 0) program::end_by_signal();
    return e.exit_code();
  } catch (const std::bad_alloc&) {
    program::complain("out of memory; end other programs or take a smaller network");
  } catch (const std::exception& e) {
    program::complain(std::string("internal error: ") + e.what() + "; please report it");
  } catch (...) { program::complain("an internal error occurred; please report it"); }
  return 1;
}

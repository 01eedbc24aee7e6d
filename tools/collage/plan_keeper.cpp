#include "plan_keeper.hpp"

#include "terminal.hpp"

#include <unistd.h>

#include <collage/error.hpp>
#include <collage/io/plan_file.hpp>

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

namespace program {

namespace c = collage;

plan_keeper::plan_keeper(std::string file) : file_(std::move(file)) {}

void plan_keeper::begin(const c::graph& network) {
  network_ = &network;
  watch_.emplace([this] { end_program(); });
}

void plan_keeper::keep(const c::plan& better) {
  const std::lock_guard lock(mutex_);
  best_ = better;
}

void plan_keeper::end() {
  if (watch_) watch_->done();
}

void plan_keeper::write(const c::plan& made, const c::graph& network) {
  try {
    c::save_plan(made, network, file_);
  } catch (...) {
    watch_.reset();
    throw;
  }
  watch_.reset();
}

void plan_keeper::end_program_without_plan() const {
  std::error_code ignored;
  complain("placing ended before there was a plan to write" +
           (std::filesystem::is_regular_file(file_, ignored) ? "; " + file_ + " stays as it is" : ""));
  end_by_signal();
}

void plan_keeper::end_program() {
  const std::lock_guard lock(mutex_);
  if (!best_) end_program_without_plan();
  int code = 0;
  try {
    c::save_plan(*best_, *network_, file_);
    complain("the best plan so far is in " + file_ + "; repeat the command to continue");
  } catch (const c::error& e) {
    complain(e.what());
    code = e.exit_code();
  } catch (const std::exception& e) {
    complain(std::string("the plan cannot be written: ") + e.what());
    code = 1;
  }
  _exit(code);
}

}  // namespace program

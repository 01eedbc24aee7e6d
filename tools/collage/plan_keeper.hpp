// Keeps the best plan of a placing, and writes it to its file, also when a signal ends the program.
#pragma once

#include "signals.hpp"

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace program {

class plan_keeper {
 public:
  explicit plan_keeper(std::string file);

  /// Placing begins: the first signal wants its end. If it does not end soon after that, because a library compiles for example,
  /// the best plan so far is written and the program ends.
  void begin(const collage::graph& network);
  /// A plan that is better than those before.
  void keep(const collage::plan& better);
  /// Placing has ended.
  void end();
  /// Says that the file stays as it is, and ends the program by the signal that ended placing.
  [[noreturn]] void end_program_without_plan() const;
  /// Writes the plan. Only then a signal ends the program at once again.
  void write(const collage::plan& made, const collage::graph& network);

  /// Calls `begin` and `end`, if there is a keeper.
  class scope {
   public:
    scope(plan_keeper* keeper, const collage::graph& network) : keeper_(keeper) {
      if (keeper_ != nullptr) keeper_->begin(network);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { end(); }
    void end() {
      if (keeper_ != nullptr) std::exchange(keeper_, nullptr)->end();
    }

   private:
    plan_keeper* keeper_;
  };

 private:
  [[noreturn]] void end_program();

  std::string file_;
  std::mutex mutex_;
  std::optional<collage::plan> best_;
  const collage::graph* network_ = nullptr;
  std::optional<finishing> watch_;
};

}  // namespace program

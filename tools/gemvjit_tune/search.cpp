#include "tools/gemvjit_tune/search.h"

#include <algorithm>
#include <set>

#include "tools/gemvjit_tune/candidates.h"

namespace gemvjit::tools {
namespace {

constexpr double kHopeless = 3;

bool faster_than_noise(const Outcome& one, const Outcome& other) {
  return one.us < other.us - (one.spread_us + other.spread_us);
}

}  // namespace

SearchLimits thorough_limits(std::size_t max_candidates) { return {max_candidates, 3, 6, 3}; }
SearchLimits quick_limits(std::size_t max_candidates) { return {max_candidates, 0, 3, 1}; }

CaseSearch::CaseSearch(std::vector<Configuration> seeds, const Configuration* present, IsValid is_valid,
                       const SearchLimits& limits)
    : seeds_(std::move(seeds)), is_valid_(std::move(is_valid)), limits_(limits) {
  if (present != nullptr && is_valid_(*present)) {
    has_present_ = true;
    present_ = *present;
    if (std::find(seeds_.begin(), seeds_.end(), present_) == seeds_.end()) seeds_.insert(seeds_.begin(), present_);
  }
}

std::vector<Configuration> CaseSearch::next_round() {
  std::vector<Configuration> round;
  while (round.empty() && stage_ != Stage::over) {
    switch (stage_) {
      case Stage::start:
        stage_ = Stage::seeds;
        round = seeds_;
        break;
      case Stage::seeds:
        stage_ = Stage::refine;
        round = refine_round();
        break;
      case Stage::refine:
        stage_ = Stage::final;
        round = final_round();
        break;
      case Stage::final:
      case Stage::over:
        stage_ = Stage::over;
        break;
    }
  }
  return round;
}

void CaseSearch::report(const Outcome& outcome) {
  if (!outcome.failure.empty() && first_failure_.empty()) {
    first_failure_ = outcome.configuration.text() + ": " + outcome.failure;
  }
  auto& outcomes = stage_ == Stage::final ? final_ : first_;
  outcomes.insert_or_assign(outcome.configuration.text(), outcome);
}

bool CaseSearch::is_hopeless(const Outcome& outcome) const {
  return std::any_of(first_.begin(), first_.end(), [&](const auto& one) {
    return one.second.failure.empty() && outcome.us > kHopeless * one.second.us;
  });
}

// What ran, the fastest first.
std::vector<const Outcome*> CaseSearch::ranked() const {
  std::vector<const Outcome*> good;
  for (const auto& [text, outcome] : first_) {
    if (outcome.failure.empty()) good.push_back(&outcome);
  }
  std::stable_sort(good.begin(), good.end(), [](const Outcome* a, const Outcome* b) { return a->us < b->us; });
  return good;
}

std::vector<Configuration> CaseSearch::refine_round() const {
  std::vector<Configuration> round;
  if (limits_.refine_best == 0 || first_.size() >= limits_.max_candidates) return round;
  const std::size_t room = limits_.max_candidates - first_.size();
  const auto best = ranked();
  std::set<std::string> seen;
  // One neighbour of each by turns, so that the first of them does not take all the room.
  std::vector<std::vector<Configuration>> around;
  for (std::size_t i = 0; i < std::min(best.size(), limits_.refine_best); ++i) {
    around.push_back(neighbours(best[i]->configuration));
  }
  for (std::size_t at = 0, left = around.size(); left > 0 && round.size() < room; ++at) {
    left = 0;
    for (const auto& list : around) {
      if (at >= list.size()) continue;
      ++left;
      if (round.size() >= room || tried(list[at]) || !is_valid_(list[at])) continue;
      if (seen.insert(list[at].text()).second) round.push_back(list[at]);
    }
  }
  return round;
}

std::vector<Configuration> CaseSearch::final_round() const {
  std::vector<Configuration> round;
  const auto add = [&](const Configuration& one) {
    if (std::find(round.begin(), round.end(), one) == round.end()) round.push_back(one);
  };
  const auto best = ranked();
  for (std::size_t i = 0; i < std::min(best.size(), limits_.finalists); ++i) add(best[i]->configuration);
  if (has_present_) {
    const auto found = first_.find(present_.text());
    if (found != first_.end() && found->second.failure.empty()) add(present_);
  }
  for (std::size_t i = 0; i < std::min(best.size(), limits_.without_pdl); ++i) {
    Configuration without = best[i]->configuration;
    without.pdl = false;
    if (is_valid_(without)) add(without);
  }
  return round;
}

Choice CaseSearch::choose() const {
  Choice choice;
  std::set<std::string> timed, failed;
  for (const auto* outcomes : {&first_, &final_}) {
    for (const auto& [text, outcome] : *outcomes) (outcome.failure.empty() ? timed : failed).insert(text);
  }
  choice.failed = static_cast<int>(failed.size());
  for (const std::string& text : failed) timed.erase(text);
  choice.candidates = static_cast<int>(timed.size());
  choice.first_failure = first_failure_;
  const Outcome *best = nullptr, *best_with_pdl = nullptr;
  for (const auto& [text, outcome] : final_) {
    if (!outcome.failure.empty()) continue;
    if (best == nullptr || outcome.us < best->us) best = &outcome;
    const bool pdl = outcome.configuration.pdl;
    if (pdl && (best_with_pdl == nullptr || outcome.us < best_with_pdl->us)) best_with_pdl = &outcome;
  }
  // Without PDL nothing of the next kernel overlaps: that must be worth more than the noise.
  if (best != nullptr && best_with_pdl != nullptr && !faster_than_noise(*best, *best_with_pdl)) best = best_with_pdl;
  if (best == nullptr) return choice;
  choice.found = true;
  choice.best = *best;
  if (!has_present_) return choice;
  const auto present = final_.find(present_.text());
  if (present == final_.end() || !present->second.failure.empty()) return choice;
  if (faster_than_noise(*best, present->second)) return choice;
  choice.best = present->second;
  choice.kept = true;
  return choice;
}

}  // namespace gemvjit::tools

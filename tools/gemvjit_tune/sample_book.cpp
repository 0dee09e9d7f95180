#include "tools/gemvjit_tune/sample_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/json_depth.h"
#include "tools/gemvjit_tune/candidates.h"
#include "tools/measure/samples.h"

namespace gemvjit::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string key_of(const CandidateSample& s) {
  return fmt::format("{}|{}|{}|{}|{}|{}", s.tune_case.text(), s.configuration.text(), s.gpu, s.compiler, s.recipe,
                     s.final);
}

std::string key_of(const AlternativeSample& s) {
  return fmt::format("{}|{}|{}|{}|{}|{}", s.tune_case.n, s.tune_case.k, s.tune_case.nt, s.tune_case.silu_mul, s.gpu,
                     s.compiler);
}

double rounded(double us) { return std::round(us * 1e4) / 1e4; }

Json to_json(const CandidateSample& s) {
  Json line = {{"kind", "candidate"}};
  line.update(case_to_json(s.tune_case));
  line["tile"] = tile_to_json(s.configuration.tile);
  line["pdl"] = s.configuration.pdl;
  line["gpu"] = s.gpu;
  line["compiler"] = s.compiler;
  line["recipe"] = s.recipe;
  line["final"] = s.final;
  line["tokens"] = s.tune_case.tokens();
  auto samples = s.samples_us;
  for (auto& list : samples) std::transform(list.begin(), list.end(), list.begin(), rounded);
  line["samples_us"] = samples;
  line["registers"] = s.registers;
  line["failure"] = s.failure;
  return line;
}

Json to_json(const AlternativeSample& s) {
  return {{"kind", "alternative"},
          {"n", s.tune_case.n},
          {"k", s.tune_case.k},
          {"nt", s.tune_case.nt},
          {"silu_mul", s.tune_case.silu_mul},
          {"gpu", s.gpu},
          {"compiler", s.compiler},
          {"us", rounded(s.us)},
          {"spread_us", rounded(s.spread_us)},
          {"failure", s.failure}};
}

// Times are positive; anything else is no sample.
bool is_sound(const CandidateSample& s) {
  if (!s.failure.empty()) return true;
  if (s.samples_us.size() != s.tune_case.tokens().size()) return false;
  for (const auto& list : s.samples_us) {
    if (list.empty()) return false;
    for (const double us : list) {
      if (!(us > 0)) return false;
    }
  }
  return true;
}

double distance(const TuneCase& a, const TuneCase& b) {
  return std::hypot(std::log2(static_cast<double>(a.n) / static_cast<double>(b.n)),
                    std::log2(static_cast<double>(a.k) / static_cast<double>(b.k)));
}

}  // namespace

Outcome CandidateSample::outcome() const {
  Outcome made;
  made.configuration = configuration;
  made.failure = failure;
  if (!failure.empty()) return made;
  std::vector<double> medians;
  double noise = 0;
  for (const auto& list : samples_us) {
    const Spread spread = summarize(list);
    medians.push_back(spread.median);
    noise += spread.half_iqr / spread.median;
    made.samples =
        made.samples == 0 ? static_cast<int>(list.size()) : std::min(made.samples, static_cast<int>(list.size()));
  }
  made.us = geometric_mean(medians);
  made.spread_us = made.us * noise / static_cast<double>(medians.size());
  return made;
}

Result<std::unique_ptr<SampleBook>> SampleBook::open(const std::string& path) {
  if (path.empty()) return std::unique_ptr<SampleBook>(new SampleBook(nullptr));
  std::vector<std::string> lines;
  bool whole = true;  // ends in a newline
  if (std::ifstream in(path); in) {
    for (std::string line; std::getline(in, line);) {
      whole = !in.eof();
      lines.push_back(std::move(line));
    }
    if (in.bad()) return Status(StatusCode::io_error, fmt::format("{} cannot be read", path));
  }
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return Status(StatusCode::io_error, fmt::format("{} cannot be opened for writing", path));
  std::unique_ptr<SampleBook> book(new SampleBook(file));
  if (!whole) std::fputc('\n', file);  // a line cut short must not spoil the next one
  for (const std::string& line : lines) book->read_line(line);
  return book;
}

SampleBook::~SampleBook() {
  if (file_ != nullptr) std::fclose(file_);
}

void SampleBook::read_line(const std::string& line) {
  if (line.empty()) return;
  if (json_nests_deeper_than(line, kMaxJsonLevels)) {
    ++damaged_lines_;
    return;
  }
  try {
    const Json object = Json::parse(line);
    if (object.at("kind") == "alternative") {
      AlternativeSample s;
      Json as_case = object;
      as_case["family"] = family_row(s.tune_case.family).name;  // a line has none: any
      const auto c = case_from_json(as_case);
      if (!c) {
        ++damaged_lines_;
        return;
      }
      s.tune_case = *c;
      s.gpu = object.at("gpu").get<std::string>(), s.compiler = object.at("compiler").get<std::string>();
      s.us = object.at("us").get<double>(), s.spread_us = object.at("spread_us").get<double>();
      s.failure = object.at("failure").get<std::string>();
      alternatives_.insert_or_assign(key_of(s), s);
      return;
    }
    const auto c = case_from_json(object);
    const auto tile = tile_from_json(object.at("tile"));
    if (object.at("kind") != "candidate" || !c || !tile) {
      ++damaged_lines_;
      return;
    }
    CandidateSample s;
    s.tune_case = *c;
    s.configuration = {*tile, object.at("pdl").get<bool>()};
    s.gpu = object.at("gpu").get<std::string>(), s.compiler = object.at("compiler").get<std::string>();
    s.recipe = object.at("recipe").get<std::string>();
    s.final = object.at("final").get<bool>();
    s.samples_us = object.at("samples_us").get<std::vector<std::vector<double>>>();
    s.registers = object.at("registers").get<unsigned>();
    s.failure = object.at("failure").get<std::string>();
    is_sound(s) ? remember(s) : void(++damaged_lines_);
  } catch (const nlohmann::json::exception&) {
    ++damaged_lines_;
  }
}

void SampleBook::remember(const CandidateSample& sample) {
  candidates_.insert_or_assign(key_of(sample), sample);
  if (!sample.failure.empty()) return;
  Known& known = known_[sample.tune_case][sample.configuration.text()];
  known = {sample.tune_case, sample.configuration, sample.outcome().us};
}

std::optional<CandidateSample> SampleBook::find(const CandidateSample& like) const {
  const std::lock_guard lock(mutex_);
  const auto found = candidates_.find(key_of(like));
  if (found == candidates_.end()) return std::nullopt;
  return found->second;
}

std::optional<AlternativeSample> SampleBook::find(const AlternativeSample& like) const {
  const std::lock_guard lock(mutex_);
  const auto found = alternatives_.find(key_of(like));
  if (found == alternatives_.end()) return std::nullopt;
  return found->second;
}

Status SampleBook::write(const std::string& line) {
  if (file_ == nullptr) return Status::ok();
  // A line at a time, so that whatever ends this run loses at most the one being written.
  if (std::fprintf(file_, "%s\n", line.c_str()) < 0 || std::fflush(file_) != 0) {
    return {StatusCode::io_error, "the file of samples cannot be written"};
  }
  return Status::ok();
}

Status SampleBook::add(const CandidateSample& sample) {
  const std::string line = to_json(sample).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::lock_guard lock(mutex_);
  remember(sample);
  return write(line);
}

Status SampleBook::add(const AlternativeSample& sample) {
  const std::string line = to_json(sample).dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::lock_guard lock(mutex_);
  alternatives_.insert_or_assign(key_of(sample), sample);
  return write(line);
}

std::vector<Configuration> SampleBook::nearest(const TuneCase& c, std::size_t shapes, std::size_t a_shape,
                                               const std::vector<Known>& also) const {
  const auto fits = [&](const TuneCase& other) {
    return other.family == c.family && other.nt == c.nt && other.silu_mul == c.silu_mul;
  };
  // The nearest cases first, so that only their configurations are copied.
  std::map<TuneCase, std::vector<Known>> by_case;
  std::vector<std::pair<double, std::vector<Known>*>> near;
  const auto consider = [&](const TuneCase& other) {
    const auto [place, is_new] = by_case.try_emplace(other);
    if (is_new) near.emplace_back(distance(c, other), &place->second);
  };
  for (const Known& known : also) {
    if (fits(known.tune_case)) consider(known.tune_case);
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, configurations] : known_) {
      if (fits(other)) consider(other);
    }
    std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (near.size() > shapes) near.resize(shapes);
    for (auto& [other, list] : by_case) {
      const auto is_near = [&, wanted = &list](const auto& one) { return one.second == wanted; };
      const auto found_case = known_.find(other);
      if (found_case == known_.end() || std::none_of(near.begin(), near.end(), is_near)) continue;
      for (const auto& [text, known] : found_case->second) list.push_back(known);
    }
  }
  for (const Known& known : also) {
    if (fits(known.tune_case)) by_case[known.tune_case].push_back(known);
  }
  for (auto& [far, list] : near) {
    std::stable_sort(list->begin(), list->end(), [](const Known& a, const Known& b) { return a.us < b.us; });
  }
  std::vector<Configuration> found;
  std::set<std::string> seen;
  for (std::size_t rank = 0; rank < a_shape; ++rank) {
    for (const auto& [far, configurations] : near) {
      if (rank >= configurations->size()) continue;
      const Known& known = (*configurations)[rank];
      const Configuration scaled = rescale_rounds(known.configuration, known.tune_case.n, c.n);
      if (seen.insert(scaled.text()).second) found.push_back(scaled);
    }
  }
  return found;
}

}  // namespace gemvjit::tools

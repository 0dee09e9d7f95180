// gemvjit-cache import: the entries of a bundle, a file or the layer of an OCI image layout, into the cache folder. All
// of it is verified before the first entry is put, so that a damaged bundle changes nothing; what the cache has already
// is left.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "cache/signed_store.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/oci_layout.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

struct Outcome {
  std::size_t imported = 0, kept = 0;
  nlohmann::ordered_json differs = nlohmann::ordered_json::array(), failed = nlohmann::ordered_json::array();
};

ExitCode complain_of_bundle(const Status& status) {
  complain(fmt::format("{}; nothing was imported", status.message()));
  switch (status.code()) {
    case StatusCode::not_found:
      return exit_nothing_found;
    case StatusCode::unsupported:
      return exit_not_trusted;
    case StatusCode::entry_damaged:
      return exit_entry_damaged;
    default:
      return exit_environment;
  }
}

ExitCode complain_of_signature(const std::string& what, const SignatureFacts& facts) {
  return complain_of_bundle({StatusCode::unsupported, fmt::format("{}: {}", what, facts.text())});
}

ExitCode open_source(const CacheArguments& arguments, OpenedLayout& opened) {
  if (is_folder(arguments.file)) {
    Result<OpenedLayout> layout = open_oci_layout(arguments.file, arguments.ref);
    if (!layout && layout.status().code() == StatusCode::invalid_argument) {
      complain(fmt::format("{}; nothing was imported", layout.status().message()));
      return exit_usage;
    }
    if (!layout) return complain_of_bundle(layout.status());
    opened = std::move(layout).value();
    return exit_done;
  }
  if (!arguments.ref.empty()) {
    complain(fmt::format("--ref is for the folder of an OCI image layout, and {} is none", arguments.file));
    return exit_usage;
  }
  auto bundle = Bundle::open(arguments.file);
  if (!bundle) return complain_of_bundle(bundle.status());
  opened.bundle = std::move(bundle).value();
  return exit_done;
}

void import_one(CubinStore& store, const Entry& entry, Outcome& outcome) {
  const std::string path = store.path_of(entry.id);
  if (const auto present = store.get(entry.id)) {
    ++outcome.kept;
    if (present->cubin.compiler_version == entry.cubin.compiler_version && present->cubin.bytes != entry.cubin.bytes) {
      outcome.differs.push_back(path);
      complain(fmt::format("{} differs from the bundle's, though both are of {}; it is left as it is", path,
                           entry.cubin.compiler_version));
    }
    return;
  }
  if (const Status status = store.put(entry); !status) {
    outcome.failed.push_back({{"path", path}, {"problem", status.message()}});
    complain(status.message());
    return;
  }
  ++outcome.imported;
}

}  // namespace

ExitCode import_entries(const CacheArguments& arguments) {
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::make, folder); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  OpenedLayout source;
  if (const ExitCode code = open_source(arguments, source); code != exit_done) return code;
  const Bundle& bundle = *source.bundle;
  const bool is_layout = bundle.path() != arguments.file;
  if (const Status trusted = signatures->check(bundle); !trusted) return complain_of_bundle(trusted);
  // No policy has to ask for what a wrong signature says: these are not the bytes that were signed.
  const SignatureFacts signer = signatures->examine(bundle);
  if (signer.state == SignatureState::bad) return complain_of_signature(arguments.file, signer);
  for (const Bundle::Item& item : bundle.items()) {
    const auto entry = bundle.read(item);
    if (!entry) return complain_of_bundle(entry.status());
    const SignatureFacts facts = signatures->examine(*entry);
    if (facts.state == SignatureState::bad) return complain_of_signature(bundle.path_of(item.id), facts);
  }
  std::unique_ptr<CubinStore> limited;
  std::uint64_t max_bytes = 0;
  if (const ExitCode code = open_limited_store(folder.path, limited, max_bytes); code != exit_done) return code;
  const auto store = make_signed_store(std::move(limited), signatures, Log::silent());
  Outcome outcome;
  for (const Bundle::Item& item : bundle.items()) {
    // Read and verified once more: not all entries of a bundle need fit into memory.
    const auto entry = bundle.read(item);
    if (entry) {
      import_one(*store, *entry, outcome);
    } else {
      outcome.failed.push_back({{"path", bundle.path_of(item.id)}, {"problem", entry.status().message()}});
      complain(entry.status().message());
    }
  }
  const std::uint64_t evicted = store->stats().evictions;
  if (evicted > 0) {
    complain(
        fmt::format("{} entries were evicted to stay below {} bytes (GEMVJIT_CACHE_MAX_BYTES)", evicted, max_bytes));
  }
  if (arguments.json) {
    nlohmann::ordered_json document{
        {"cache_dir", folder.path},     {"bundle", bundle.path()}, {"signature", signature_json(signer)},
        {"imported", outcome.imported}, {"kept", outcome.kept},    {"evicted", evicted},
        {"differs", outcome.differs},   {"failed", outcome.failed}};
    if (is_layout) document["manifest"] = oci_digest(source.manifest);
    print_json(document);
  } else {
    tell("{} entries imported into {}, {} were there; the bundle is {}\n", outcome.imported, folder.path, outcome.kept,
         signer.text());
  }
  return outcome.failed.empty() ? exit_done : exit_cache_not_writable;
}

}  // namespace gemvjit::tools
